-- A thread gets and sets values of its own while it runs.
value = 5

function request()
  wrk.thread:set("copy", wrk.thread:get("value") + 1)
  if copy ~= 6 then
    error("the value did not arrive")
  end
  return wrk.format("GET", "/copy/" .. copy)
end

function response(status)
  wrk.thread:set("last", status)
  if last ~= 200 or wrk.thread:get("last") ~= 200 then
    error("the status did not arrive")
  end
end
