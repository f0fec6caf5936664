-- A chunked body comes whole.
local seen = 0

function response(status, headers, body)
  seen = seen + 1
  if seen == 1 then
    print(headers["Transfer-Encoding"], headers["Content-Length"], body)
  end
end
