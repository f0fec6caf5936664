-- A script's own wrk.format is what wrk.init and the script itself call.
local original = wrk.format

wrk.format = function(method, path, headers, body)
  calls = (calls or 0) + 1
  return original(method, "/replaced" .. (path or ""), headers, body)
end

request = function()
  return wrk.format("GET", "/x")
end
