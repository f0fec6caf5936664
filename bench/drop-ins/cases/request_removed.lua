-- Once request is no function any more, the request of wrk.init is sent.
local number = 0

function request()
  number = number + 1
  if number > 4 then
    request = nil
  end
  return wrk.format("GET", "/own/" .. number)
end
