-- Several requests in one text; replies and requests are counted singly.
local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function init(arguments)
  local texts = {}
  for number = 1, tonumber(arguments[1]) do
    texts[number] = wrk.format("GET", "/?n=" .. number)
  end
  batch = table.concat(texts)
end

function request()
  calls = (calls or 0) + 1
  return batch
end

function response()
  replies = (replies or 0) + 1
end

function done(summary, latency, requests)
  local replies = 0
  for _, thread in ipairs(threads) do
    replies = replies + thread:get("replies")
  end
  -- Replies that come after the end are told to the script by one and not by the other.
  print("counted alike", math.abs(replies - summary.requests) <= 24)
end
