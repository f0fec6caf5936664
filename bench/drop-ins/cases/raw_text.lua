-- Texts that wrk.format did not make.
local number = 0

function request()
  number = number + 1
  return "POST /raw?n=" .. number .. " HTTP/1.1\r\nhost: raw.example\r\nX-Raw:  two blanks\r\n" ..
    "content-length: 4\r\n\r\nabcd"
end
