-- 20 ms before each request, the first included.
local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function delay()
  delays = (delays or 0) + 1
  return 20
end

function done(summary, latency, requests)
  local delays = 0
  for _, thread in ipairs(threads) do
    delays = delays + thread:get("delays")
  end
  print("a delay for each request", delays >= summary.requests, delays <= summary.requests + 4)
  print("not in the latency", latency.min < 20000)
end
