-- A body of all bytes, and one of 100,000.
local bytes = {}
for i = 0, 255 do
  bytes[#bytes + 1] = string.char(i)
end
local small, large = table.concat(bytes), string.rep("0123456789", 10000)
local number = 0

function request()
  number = number + 1
  return wrk.format("POST", "/upload", nil, number % 2 == 0 and small or large)
end
