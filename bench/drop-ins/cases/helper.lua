-- A module for `modules.lua`.
local helper = {}

function helper.double(number)
  return number * 2
end

return helper
