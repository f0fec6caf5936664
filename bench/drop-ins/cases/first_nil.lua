request = function()
  return nil
end
