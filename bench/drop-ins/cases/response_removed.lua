-- Once response is no function any more, the next reply is an error.
function response()
  seen = (seen or 0) + 1
  if seen == 3 then
    response = nil
  end
end
