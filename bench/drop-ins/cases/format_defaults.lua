-- What wrk.format takes from the table wrk, and what it changes in the headers that it is given.
wrk.method = "PUT"
wrk.body = "from wrk.body"
wrk.headers["Content-Type"] = "text/plain"

-- At load there is no Host yet: this one is sent without.
local early = wrk.format("GET", "/early", {["X-Early"] = "1"})

local step = 0

function request()
  step = step + 1
  local which = step % 6
  if which == 0 then
    return early
  elseif which == 1 then
    return wrk.format()
  elseif which == 2 then
    return wrk.format("POST", nil, nil, "own body")
  elseif which == 3 then
    wrk.body = nil
    local headers = {["Content-Length"] = "17", ["X-N"] = 5, ["X-T"] = true, ["X-F"] = 1.5}
    local text = wrk.format("GET", "/values", headers)
    if step < 7 then
      print("after:", headers["Content-Length"], headers["Host"] ~= nil)
    end
    wrk.body = "from wrk.body"
    return text
  elseif which == 4 then
    return wrk.format("DELETE", "http://other.example:81/absolute?x=1", {Host = "other.example"})
  end
  return wrk.format("PATCH", "/last", {["X-Empty"] = ""}, "")
end

print((pcall(wrk.format, "GET", "/", "a string")))
