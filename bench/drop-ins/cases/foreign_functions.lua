-- The C library by ffi, and its integers as delays.
local ffi = require("ffi")
ffi.cdef [[
struct timespec { long seconds; long nanoseconds; };
int clock_gettime(int clock, struct timespec *now);
int getpid(void);
]]

local now = ffi.new("struct timespec")

local function milliseconds()
  ffi.C.clock_gettime(1, now)
  return now.seconds * 1000 + now.nanoseconds / 1000000
end

print(ffi.C.getpid() > 0, type(milliseconds()), bit.band(12, 10))

function delay()
  local begun = milliseconds()
  return tonumber(milliseconds() - begun) + 2
end
