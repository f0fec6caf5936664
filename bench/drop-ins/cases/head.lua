-- HEAD: the reply has a length and no body. wrk waits for that body.
wrk.method = "HEAD"

function response(status, headers, body)
  replies = (replies or 0) + 1
  if replies == 1 then
    print(status, #body, headers["Content-Length"] ~= nil)
  end
end
