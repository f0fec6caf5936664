-- Tables in tables: wrk crashes here.
local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
  thread:set("tree", {x = {1, 2, {y = "deep"}}, list = {{"a"}, {"b"}}})
end

function init(arguments)
  print("in the thread", tree.x[2], tree.x[3].y, #tree.list, tree.list[2][1])
  result = {inner = {tree.x[1], {"back"}}}
end

function done()
  local result = threads[1]:get("result")
  print("and back", result.inner[1], result.inner[2][1])
end
