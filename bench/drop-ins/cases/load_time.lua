-- What a script finds when it is loaded, and what comes of -H.
print("load", wrk.scheme, wrk.host, type(wrk.port), wrk.path, wrk.method, wrk.body)
print("thread", wrk.thread, "Host", wrk.headers["Host"], "addrs", wrk.addrs)
print(wrk.headers["X-A"], wrk.headers["x-b"], "[" .. tostring(wrk.headers["X-C"]) .. "]")
print(debug.getinfo(1, "S").source, debug.getinfo(1, "S").short_src, arg, ...)
print(_VERSION, type(jit), type(bit), type(ffi), type(require("ffi")), package.loaded.wrk == wrk)
print(require("wrk") == wrk)

local names = {}
for name, value in pairs(wrk) do
  names[#names + 1] = name .. "=" .. type(value)
end
table.sort(names)
print(table.concat(names, " "))
