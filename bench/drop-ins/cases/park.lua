-- A request of nil parks its connection.
local number = 0

function request()
  number = number + 1
  if number > 3 then
    return nil
  end
  return wrk.format("GET", "/n/" .. number)
end
