-- The thread ends after 10 replies; the run lasts as long as it was told.
local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function response()
  replies = (replies or 0) + 1
  if replies == 10 then
    wrk.thread:stop()
  end
end

function done(summary)
  print(summary.duration > 900000)
end
