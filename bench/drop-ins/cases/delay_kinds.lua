-- Delays of nothing, of text, of a fraction, and none.
local number = 0

function delay()
  number = number + 1
  local which = number % 4
  if which == 1 then
    return 3.7
  elseif which == 2 then
    return "2"
  elseif which == 3 then
    return 0
  end
end

function request()
  return wrk.format("GET", "/n/" .. number)
end
