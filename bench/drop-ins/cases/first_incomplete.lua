request = function()
  return "GET / HTTP/1.1\r\nHost: x\r\n"
end
