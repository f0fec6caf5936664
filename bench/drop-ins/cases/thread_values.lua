-- Values that go to a thread and come back.
local threads = {}

-- Replies that come after the end are told to the script by one and not by the other.
local function near(a, b)
  return math.abs(a - b) <= 8
end

function setup(thread)
  threads[#threads + 1] = thread
  thread:set("id", #threads)
  thread:set("text", "some text")
  thread:set("cut", "before\0after")
  thread:set("yes", true)
  thread:set("nothing", nil)
  thread:set("flat", {1, 2, "three", x = 4.5, [true] = false})
  print(pcall(function() thread:set("bad", print) end))
  print(thread:get("no_such"), thread:get("id"), thread:get("text"))
end

function init(arguments)
  print(id, text, #cut, yes, nothing, #flat, flat[1], flat[3], flat.x, flat[true])
  list = {"a", "b", n = 2}
end

function request()
  sent = (sent or 0) + 1
  return wrk.format("GET", "/thread/" .. id .. "/" .. sent)
end

function response(status)
  answered = (answered or 0) + 1
  last = status
end

function done(summary, latency, requests)
  local total = 0
  for number, thread in ipairs(threads) do
    local back = thread:get("list")
    print(number, thread:get("id"), thread:get("last"), #back, back[2], back.n, thread:get("none"))
    total = total + thread:get("answered")
  end
  print(near(total, summary.requests), sent, answered)
end
