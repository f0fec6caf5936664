-- wrk.request() is the request of wrk.init.
local number = 0

function request()
  number = number + 1
  wrk.headers["X-Later"] = "not in it"
  return wrk.request()
end
