-- A token out of the first reply's body, then requests that carry it.
local token
local path = "/login"

function request()
  if token then
    return wrk.format("GET", path, {Authorization = "Bearer " .. token})
  end
  return wrk.format("POST", path, {["Content-Type"] = "application/json"}, '{"user":"a"}')
end

function response(status, headers, body)
  if not token and status == 200 then
    token = body:match('"token": "(%w+)"')
    path = "/private"
  end
end
