-- Addresses: looked up, tried, shown, set; and what may not be set.
local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
  print("addrs", #wrk.addrs, tostring(thread.addr) == tostring(wrk.addrs[1]), type(thread.addr))
  local found = wrk.lookup(wrk.host, wrk.port)
  print("found", #found, type(found[1]), wrk.connect(found[1]))
  local by_number = wrk.lookup("127.0.0.1", tonumber(wrk.port))
  print("by number", tostring(by_number[1]) == wrk.host .. ":" .. wrk.port)
  thread.addr = found[1]
  print(pcall(function() thread.addr = "a string" end))
  print(pcall(function() thread.other = 1 end))
  print(pcall(function() thread.other = "text" end))
  print(thread.unknown, type(thread.get), type(thread.set), type(thread.stop))
end

function init(arguments)
  print("own", tostring(wrk.thread.addr):gsub("%d+$", "PORT"))
end
