-- summary, latency and requests, with their odd corners.
function done(summary, latency, requests)
  print(type(summary), type(latency), type(requests))
  print(requests.total, latency.foo, latency["percentile"] ~= nil)
  print(type(latency.min), type(latency.max), type(latency.mean), type(latency.stdev))
  print(latency.min <= latency.mean, latency.mean <= latency.max, latency.stdev >= 0)
  print(latency:percentile(0) <= latency:percentile(50), latency:percentile(100) <= latency.max)
  print(latency:percentile(99.999) >= latency:percentile(50))

  local value, count = latency(1)
  print(value == latency.min, count >= 1, #latency >= 1)
  local sum = 0
  for i = 1, #latency do
    local _, count = latency(i)
    sum = sum + count
  end
  -- Not the same: wrk adds values to those of slow replies.
  print("a value for each reply", sum >= summary.requests)
  print(latency(#latency + 1))
  print(latency[1], requests[1])

  print(requests.min <= requests.max, requests.mean > 0, #requests >= 1, type(requests(1)))
  print(summary.duration > 500000, summary.requests > 0, summary.bytes > summary.requests * 100)
  local names = {}
  for name, number in pairs(summary.errors) do
    names[#names + 1] = name .. "=" .. number
  end
  table.sort(names)
  print(table.concat(names, " "))
  print(string.format("%d %d %d", summary.duration, summary.requests, latency.mean))
end
