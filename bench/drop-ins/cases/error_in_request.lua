local number = 0

function request()
  number = number + 1
  if number > 20 then
    local nothing = nil
    return nothing.field
  end
  return wrk.format("GET", "/n/" .. number)
end
