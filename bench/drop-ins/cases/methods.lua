-- Methods in turn, with and without a body.
local methods = {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"}
local number = 0

function request()
  number = number + 1
  local method = methods[number % #methods + 1]
  local body = (method == "POST" or method == "PUT" or method == "PATCH") and ("n=" .. number) or nil
  return wrk.format(method, "/" .. method:lower(), nil, body)
end
