function response(status, headers, body)
  seen = (seen or 0) + 1
  if seen > 20 then
    error("response fails")
  end
end
