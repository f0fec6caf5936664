-- done() prints JSON after a mark, and CSV on stderr.
done = function(summary, latency, requests)
  io.write("$\n{")
  io.write(string.format('"requests": %d, "duration_us": %0.2f, ', summary.requests, summary.duration))
  io.write(string.format('"rate": %0.2f, ', summary.requests / summary.duration * 1e6))
  for _, percentile in pairs({50, 75, 90, 99, 99.999}) do
    io.write(string.format('"p%g": %d, ', percentile, latency:percentile(percentile)))
  end
  io.write('"end": true}\n')
  local columns = {summary.bytes, summary.errors.timeout, latency.min, latency.mean, latency.stdev}
  for number, value in pairs(columns) do
    if number > 1 then
      io.stderr:write(",")
    end
    io.stderr:write(string.format("%d", value))
  end
end
