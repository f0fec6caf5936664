-- init(arguments): the URL has index 0 and does not count in #.
function init(arguments)
  print("init", #arguments, arguments[1], arguments[2], arguments[3], arguments[-1])
  print(arguments[0]:gsub("%d+", "N"))
  local count = 0
  for _ in pairs(arguments) do
    count = count + 1
  end
  print("pairs", count, type(wrk.thread), wrk.headers["Host"] ~= nil)
end
