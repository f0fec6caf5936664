-- For wrk: each connection pauses before a request, for the milliseconds after `--`.

function init(arguments)
  pause_ms = tonumber(arguments[1])
end

function delay()
  return pause_ms
end
