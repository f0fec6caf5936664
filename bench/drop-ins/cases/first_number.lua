request = function()
  return 42
end
