request = function()
  return ""
end
