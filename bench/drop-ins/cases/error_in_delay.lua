function delay()
  calls = (calls or 0) + 1
  if calls > 20 then
    error({code = 1})
  end
  return 1
end
