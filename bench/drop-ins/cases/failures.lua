-- Every second reply is 500: counted, not hidden, and latencies as of any other.
function response(status)
  if status == 500 then
    failed = (failed or 0) + 1
  end
end

function done(summary)
  local errors = summary.errors
  print(errors.status > 0, errors.status <= summary.requests, errors.connect, errors.read)
end
