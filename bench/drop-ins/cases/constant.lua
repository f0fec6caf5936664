-- request() returns the same text each time.
init = function()
  text = wrk.format("GET", "/constant", {["X-A"] = "1"})
end

request = function()
  return text
end
