-- What Lua 5.1 has and later ones have not, and what LuaJIT adds.
local list = {1, 2, 3}
print(table.getn(list), unpack(list))
print(loadstring("return 1 + 1")(), "10" + 5, 7 / 2, string.format("%d", 3.7))
local inner = setfenv(function() return hidden end, {hidden = "environment"})
print(inner(), getfenv(1) == _G, math.pow(2, 10), string.gfind == nil)
print(pcall(string.format, "%d", "x"))
goto last
print("left out")
::last::
print(string.format("%s %s", tostring(nil), tostring(true)), #"\x41\z
   b", 0xffULL)
