-- A formatted request and the status of its reply.
local number, failures = 0, 0

request = function()
  number = number + 1
  return wrk.format("GET", nil, {["X-Number"] = number, ["Accept"] = "text/html"})
end

response = function(status)
  if status ~= 200 then
    failures = failures + 1
  end
end
