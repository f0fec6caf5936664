-- The second result of request() comes back with the reply: from a fork of wrk.
local number = 0

function request()
  number = number + 1
  local name = number % 2 == 0 and "even" or "odd"
  return wrk.format("GET", "/tag/" .. number, {["X-Sent"] = name}), name
end

function response(status, headers, body, name)
  if headers["X-Sent"] ~= name then
    error("a reply came with the wrong name: " .. tostring(name))
  end
  replies = (replies or 0) + 1
end
