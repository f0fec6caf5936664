-- A batch whose requests differ in method, body and length.
local number = 0

function request()
  number = number + 1
  return table.concat({
    wrk.format("GET", "/first?n=" .. number),
    wrk.format("POST", "/second", {["Content-Type"] = "text/plain"}, string.rep("b", number % 50)),
    wrk.format("DELETE", "/third/" .. number),
  })
end
