-- A cookie from the first reply goes with all later requests.
local cookie

function request()
  return wrk.format()
end

function response(status, headers, body)
  if not cookie and status == 302 then
    cookie = headers["Set-Cookie"]
    wrk.headers["Cookie"] = cookie
  end
end
