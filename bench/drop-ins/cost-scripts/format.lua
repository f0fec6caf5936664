-- A counter and two headers, formatted for each request.
local number = 0

request = function()
  number = number + 1
  return wrk.format("GET", nil, {["X-Number"] = number, ["Accept"] = "text/html"})
end
