request = function()
  return "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345"
end
