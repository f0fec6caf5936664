function init(arguments)
  local nothing = nil
  return nothing.field
end
