-- Replies without any header, whose body lasts until the connection ends.
local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function response(status, headers, body)
  seen = (seen or 0) + 1
end

function done(summary)
  print(summary.requests > 10, threads[1]:get("seen"))
end
