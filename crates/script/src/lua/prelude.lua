-- What a script finds when it is loaded: the table `wrk` and its objects. It calls Rust through
-- `native`, whose functions never raise: they return nil and a message, and the error is raised
-- here, where no frame of Rust is in the way of its unwinding.
local native, settings = ...

local debug, error, getmetatable, package = debug, error, getmetatable, package
local newproxy, pairs, pcall = newproxy, pairs, pcall
local select, setmetatable = select, setmetatable
local tonumber, tostring, type = tonumber, tostring, type
local concat, remove = table.concat, table.remove
local format, length = string.format, string.len
local _G = _G
local io_output, write_to, stdout = io.output, io.stdout.write, io.stdout
local original_write = io.write

-- Threads print at the same time. What one call prints goes out as one text, which C's lock of the
-- stream keeps whole.
function _G.print(...)
   local parts, count = {}, select("#", ...)
   for i = 1, count do
      local part = _G.tostring((select(i, ...)))
      if type(part) ~= "string" then
         error("'tostring' must return a string to 'print'", 2)
      end
      parts[i] = part
   end
   write_to(stdout, concat(parts, "\t", 1, count) .. "\n")
end

function io.write(...)
   for i = 1, select("#", ...) do
      local kind = type((select(i, ...)))
      if kind ~= "string" and kind ~= "number" then
         return original_write(...)
      end
   end
   return write_to(io_output(), concat({ ... }))
end

local wrk = {
   scheme = settings.scheme,
   host = settings.host,
   port = settings.port,
   method = "GET",
   path = settings.path,
   headers = {},
   body = nil,
   thread = nil,
}

-- As luaL_argerror words it.
local function bad_argument(position, name, expected, value, is_absent)
   local found = is_absent and "no value" or type(value)
   error(format("bad argument #%d to '%s' (%s expected, got %s)", position, name, expected, found), 3)
end

-- Addresses, threads and statistics are userdata, as they are in wrk. What they stand for:
local address_ids = setmetatable({}, { __mode = "k" })
local thread_indexes = setmetatable({}, { __mode = "k" })

local function address_text(address)
   local text, message = native.address_text(address_ids[address])
   if not text then
      error("addr tostring failed " .. message, 2)
   end
   return text
end

local function new_address(id)
   local address = newproxy(true)
   getmetatable(address).__tostring = address_text
   address_ids[address] = id
   return address
end

function wrk.lookup(host, service)
   local found = { native.lookup(host, service) }
   if not found[1] then
      error(found[2], 0)
   end
   local addresses = {}
   for i = 1, #found do
      addresses[i] = new_address(found[i])
   end
   return addresses
end

function wrk.connect(...)
   local address = select(-1, ...)
   local id = address ~= nil and address_ids[address]
   if not id then
      bad_argument(2, "connect", "wrk.addr", address, select("#", ...) == 0)
   end
   return native.connect(id)
end

local function thread_get(...)
   local thread, key = ...
   local index = thread ~= nil and thread_indexes[thread]
   if not index then
      bad_argument(1, "get", "wrk.thread", thread, select("#", ...) == 0)
   end
   local is_there, value = native.get(index, key)
   if not is_there then
      error(value, 2)
   end
   return value
end

local function thread_set(...)
   local thread, key, value = ...
   local index = thread ~= nil and thread_indexes[thread]
   if not index then
      bad_argument(1, "set", "wrk.thread", thread, select("#", ...) == 0)
   end
   local is_set, message = native.set(index, key, value)
   if not is_set then
      error(message, 2)
   end
end

local function thread_stop(...)
   local thread = ...
   local index = thread ~= nil and thread_indexes[thread]
   if not index then
      bad_argument(1, "stop", "wrk.thread", thread, select("#", ...) == 0)
   end
   native.stop(index)
end

-- wrk returns the key of a field that it does not know; numbers become strings on the way.
local function unknown_field(key)
   return type(key) == "number" and tostring(key) or key
end

local function thread_index(thread, key)
   if key == "get" then
      return thread_get
   elseif key == "set" then
      return thread_set
   elseif key == "stop" then
      return thread_stop
   elseif key == "addr" then
      local id = native.address(thread_indexes[thread])
      return id and new_address(id)
   end
   return unknown_field(key)
end

local function thread_newindex(thread, key, value)
   if key ~= "addr" then
      error("cannot set '" .. type(value) .. "' on thread", 2)
   end
   local id = value ~= nil and address_ids[value]
   if not id then
      bad_argument(4, "__newindex", "wrk.addr", value)
   end
   native.set_address(thread_indexes[thread], id)
end

local function new_thread(index)
   local thread = newproxy(true)
   local meta = getmetatable(thread)
   meta.__index = thread_index
   meta.__newindex = thread_newindex
   thread_indexes[thread] = index
   return thread
end

function wrk.resolve(host, service)
   local addresses = wrk.lookup(host, service)
   for i = #addresses, 1, -1 do
      if not wrk.connect(addresses[i]) then
         remove(addresses, i)
      end
   end
   wrk.addrs = addresses
end

function wrk.setup(thread)
   -- Absent behind a Unix socket.
   if wrk.addrs[1] then
      thread.addr = wrk.addrs[1]
   end
   if type(setup) == "function" then
      setup(thread)
   end
end

function wrk.init(args)
   if not wrk.headers["Host"] then
      local host = wrk.host
      local port = wrk.port
      host = host:find(":") and ("[" .. host .. "]") or host
      host = port and (host .. ":" .. port) or host
      wrk.headers["Host"] = host
   end
   if type(init) == "function" then
      init(args)
   end
   local request = wrk.format()
   wrk.request = function()
      return request
   end
end

function wrk.format(method, path, headers, body)
   method = method or wrk.method
   path = path or wrk.path
   headers = headers or wrk.headers
   body = body or wrk.body
   if not headers["Host"] then
      headers["Host"] = wrk.headers["Host"]
   end
   if body then
      headers["Content-Length"] = length(body)
   elseif body ~= nil or headers["Content-Length"] ~= nil then
      headers["Content-Length"] = body
   end

   local text, message
   if type(headers) == "table" then
      text, message = native.format(method, path, headers, body)
   end
   if text then
      return text
   elseif message then
      error(message, 2)
   end
   -- Values that only Lua can turn into text, or an error of Lua's.
   local lines = { format("%s %s HTTP/1.1", method, path) }
   for name, value in pairs(headers) do
      lines[#lines + 1] = format("%s: %s", name, value)
   end
   lines[#lines + 1] = ""
   lines[#lines + 1] = body or ""
   return concat(lines, "\r\n")
end

if settings.is_wrk2 then
   wrk.time_us = native.time_us
end

-- Statistics, as `done` is given them: 0 stands for latencies, 1 for requests.
local statistics_kinds = setmetatable({}, { __mode = "k" })
local PERCENTILE = settings.is_wrk2 and "percentile_by_hdr" or "percentile"

local function percentile(...)
   local statistics, p = ...
   local kind = statistics ~= nil and statistics_kinds[statistics]
   if not kind then
      bad_argument(1, "percentile", "wrk.stats", statistics, select("#", ...) == 0)
   end
   local number = tonumber(p)
   if not number then
      bad_argument(2, "percentile", "number", p, select("#", ...) < 2)
   end
   return (native.statistic(kind, PERCENTILE, number))
end

local function statistics_index(statistics, key)
   local kind = statistics_kinds[statistics]
   if key == "percentile" then
      return percentile
   elseif key == "min" or key == "max" or key == "mean" or key == "stdev" then
      return (native.statistic(kind, key, 0))
   elseif settings.is_wrk2 and type(key) == "number" then
      local total = native.statistic(kind, "count", 0)
      return (native.statistic(kind, "percentile_by_hdr", 100 * key / total))
   end
   return unknown_field(key)
end

local function statistics_length(statistics)
   local what = settings.is_wrk2 and "count" or "distinct"
   return (native.statistic(statistics_kinds[statistics], what, 0))
end

local function statistics_call(statistics, index)
   return native.statistic(statistics_kinds[statistics], "nth", tonumber(index) or 0)
end

local function new_statistics(kind)
   local statistics = newproxy(true)
   local meta = getmetatable(statistics)
   meta.__index = statistics_index
   meta.__len = statistics_length
   if not settings.is_wrk2 then
      meta.__call = statistics_call
   end
   statistics_kinds[statistics] = kind
   return statistics
end

-- The folders of distributions, which a LuaJIT of one's own does not know; where LUA_PATH or
-- LUA_CPATH leave out the usual folders, they are meant to.
local function add_folders(path, usual, folders)
   if not path:find(usual, 1, true) then
      return path
   end
   local known = ";" .. path .. ";"
   for i = 1, #folders do
      if not known:find(";" .. folders[i] .. ";", 1, true) then
         path = path .. ";" .. folders[i]
      end
   end
   return path
end

package.path = add_folders(package.path, "/usr/local/share/lua/5.1/?.lua", {
   "/usr/share/lua/5.1/?.lua",
   "/usr/share/lua/5.1/?/init.lua",
})
package.cpath = add_folders(package.cpath, "/usr/local/lib/lua/5.1/?.so", {
   "/usr/lib/" .. settings.architecture .. "-linux-gnu/lua/5.1/?.so",
   "/usr/lib64/lua/5.1/?.so",
   "/usr/lib/lua/5.1/?.so",
})

-- Modules that scripts often want, and that are often not installed. Installed ones win.
local stand_ins = {
   ["socket"] = function()
      return {
         _VERSION = "brunt's stand-in for LuaSocket: gettime and sleep",
         gettime = function()
            return native.time_us() / 1e6
         end,
         sleep = function(seconds)
            native.sleep(tonumber(seconds) or 0)
         end,
      }
   end,
   ["cjson"] = function()
      return native.json()(native.null, false)
   end,
   ["cjson.safe"] = function()
      return native.json()(native.null, true)
   end,
}
-- One that is there and does not load, such as one in C for another Lua, is as good as none.
for i = 2, #package.loaders do
   local load = package.loaders[i]
   package.loaders[i] = function(name)
      local stand_in = stand_ins[name]
      if not stand_in then
         return load(name)
      end
      local is_loaded, chunk = pcall(load, name)
      if not is_loaded then
         return stand_in
      elseif type(chunk) ~= "function" then
         return chunk
      end
      return function(...)
         local is_run, module = pcall(chunk, ...)
         if is_run then
            return module
         end
         return stand_in()
      end
   end
end
package.loaders[#package.loaders + 1] = function(name)
   return stand_ins[name] or ("\n\tno stand-in for '" .. name .. "' in brunt")
end

_G.wrk = wrk
_G.url = settings.url
package.loaded.wrk = wrk

-- What ends a call that does not return: Rust takes the hook from here and sets it again when it
-- has to (`Interrupt`).
debug.sethook(function()
   error("it was still running when the run was over", 2)
end, "", 1e9)

-- What Rust calls.
return {
   set_header = function(name, value)
      wrk.headers[name] = value
   end,
   set_field = function(name, value)
      wrk[name] = value
   end,
   -- Returns how many addresses are left.
   resolve = function(host, service)
      _G.wrk.resolve(host, service)
      return #_G.wrk.addrs
   end,
   without_addresses = function()
      wrk.addrs = {}
   end,
   -- In the main state.
   setup = function(index)
      _G.wrk.setup(new_thread(index))
   end,
   -- In the state of a thread.
   set_thread = function(index)
      _G.wrk.thread = new_thread(index)
   end,
   init = function(...)
      local args = {}
      for i = 1, select("#", ...) do
         args[i - 1] = (select(i, ...))
      end
      _G.wrk.init(args)
   end,
   -- The request where there is no global function for it.
   request = function()
      local request = _G.request
      if type(request) ~= "function" then
         request = _G.wrk.request
      end
      return request()
   end,
   defines = function(name)
      return type(_G[name]) == "function"
   end,
   -- How many of its three arguments a response function can see.
   arity = function(callback)
      local info = debug.getinfo(callback, "u")
      return info.isvararg and 3 or info.nparams
   end,
   teardown = function()
      if type(teardown) == "function" then
         teardown()
      end
   end,
   done = function(duration, requests, bytes, connect, read, write, status, timeout)
      local summary = {
         duration = duration,
         requests = requests,
         bytes = bytes,
         errors = {
            connect = connect,
            read = read,
            write = write,
            status = status,
            timeout = timeout,
         },
      }
      done(summary, new_statistics(0), new_statistics(1))
   end,
   address_ids = address_ids,
   new_address = new_address,
}
