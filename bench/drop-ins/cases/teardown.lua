-- teardown() in each thread after the run, before done(): from a fork of wrk2.
local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function teardown()
  torn = "down"
end

function done()
  for _, thread in ipairs(threads) do
    print("teardown:", thread:get("torn"))
  end
end
