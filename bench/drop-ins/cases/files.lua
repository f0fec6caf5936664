-- Paths out of a file, one written at the end, and the environment.
local paths = {}
for line in io.lines("paths.txt") do
  paths[#paths + 1] = line
end
if #paths == 0 then
  print("no paths")
  os.exit(1)
end
print("paths", #paths, os.getenv("CASE"))

local number = 0

function request()
  number = number + 1
  return wrk.format("GET", paths[number % #paths + 1] .. "?case=" .. os.getenv("CASE"))
end

function done(summary, latency, requests)
  local file = assert(io.open("result.csv", "w"))
  file:write("requests,mean\n", string.format("%d,%.2f\n", summary.requests, latency.mean))
  file:close()
end
