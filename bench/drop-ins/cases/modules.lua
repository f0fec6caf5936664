-- Modules beside the script, and those that distributions and brunt have.
local helper = require "helper"
local cjson = require "cjson"
local safe = require "cjson.safe"
local socket = require "socket"

print(helper.double(21), socket.gettime() > 1e9, type(socket.sleep))
print(cjson.encode({1, 2, "x", true, cjson.null}), cjson.decode('{"a":[1,{"b":null}]}').a[1])
print(safe.decode("{broken") == nil, pcall(cjson.decode, "{broken"))
print(cjson.encode("a/b\"\n\1"), cjson.decode("[1.5,-2e3]")[2], cjson.encode({}))

local number = 0

function request()
  number = number + 1
  local body = cjson.encode({number = number})
  return wrk.format("POST", "/json", {["Content-Type"] = "application/json"}, body)
end

function response(status, headers, body)
  local reply = cjson.decode(body)
  if reply.items[3] ~= 3 or reply.token ~= headers["X-Token"] then
    error("the reply is not what it should be")
  end
end
