-- The same text each time.
init = function()
  text = wrk.format()
end

request = function()
  return text
end
