request = function()
  return "GET / HTTP/1.1\r\nBad Header\r\n\r\n"
end
