-- A stand-in for the module cjson, in the part of it that scripts use: encode, decode, null.
local null, is_safe = ...

local concat, error, floor, format, pairs = table.concat, error, math.floor, string.format, pairs
local pcall, tostring, type, char = pcall, tostring, type, string.char
local byte, find, gsub, match, sub = string.byte, string.find, string.gsub, string.match, string.sub
local tonumber, huge = tonumber, math.huge

local DEPTH_MAX = 1000

local ESCAPES = {
   ['"'] = '\\"', ["\\"] = "\\\\", ["/"] = "\\/", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n",
   ["\r"] = "\\r", ["\t"] = "\\t", ["\127"] = "\\u007f",
}
for code = 0, 31 do
   local text = char(code)
   ESCAPES[text] = ESCAPES[text] or format("\\u%04x", code)
end

local function quote(text)
   return '"' .. gsub(text, '[%c"\\/\127]', ESCAPES) .. '"'
end

-- The length of what is written as an array; nil of an object.
local function array_length(value)
   local count, last = 0, 0
   for key in pairs(value) do
      if type(key) ~= "number" or key < 1 or floor(key) ~= key then
         return nil
      end
      count = count + 1
      if key > last then
         last = key
      end
   end
   if last == 0 then
      return nil
   end
   if last > 10 and last > 2 * count then
      error("Cannot serialise table: excessively sparse array", 0)
   end
   return last
end

local encode_value

local function encode_table(value, out, depth)
   if depth > DEPTH_MAX then
      error("Cannot serialise, excessive depth (" .. depth .. ")", 0)
   end
   local length = array_length(value)
   if length then
      out[#out + 1] = "["
      for i = 1, length do
         if i > 1 then
            out[#out + 1] = ","
         end
         encode_value(value[i], out, depth)
      end
      out[#out + 1] = "]"
      return
   end
   out[#out + 1] = "{"
   local is_first = true
   for key, item in pairs(value) do
      local kind = type(key)
      if kind == "number" then
         key = format("%.14g", key)
      elseif kind ~= "string" then
         error("Cannot serialise table: table key must be a number or string", 0)
      end
      if not is_first then
         out[#out + 1] = ","
      end
      is_first = false
      out[#out + 1] = quote(key) .. ":"
      encode_value(item, out, depth)
   end
   out[#out + 1] = "}"
end

function encode_value(value, out, depth)
   local kind = type(value)
   if kind == "string" then
      out[#out + 1] = quote(value)
   elseif kind == "number" then
      if value ~= value or value == huge or value == -huge then
         error("Cannot serialise number: must not be NaN or Inf", 0)
      end
      out[#out + 1] = format("%.14g", value)
   elseif kind == "boolean" then
      out[#out + 1] = value and "true" or "false"
   elseif kind == "nil" or value == null then
      out[#out + 1] = "null"
   elseif kind == "table" then
      encode_table(value, out, depth + 1)
   else
      error("Cannot serialise " .. kind .. ": type not supported", 0)
   end
end

local function encode(value)
   local out = {}
   encode_value(value, out, 0)
   return concat(out)
end

local UNESCAPES = {
   ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n", r = "\r", t = "\t",
}
local LITERALS = { ["true"] = true, ["false"] = false, ["null"] = null }

local function expected(what, text, at)
   local found = at > #text and "T_END" or "invalid token"
   error(format("Expected %s but found %s at character %d", what, found, at), 0)
end

local function utf8(code)
   if code < 0x80 then
      return char(code)
   elseif code < 0x800 then
      return char(0xc0 + floor(code / 0x40), 0x80 + code % 0x40)
   elseif code < 0x10000 then
      return char(0xe0 + floor(code / 0x1000), 0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40)
   end
   return char(
      0xf0 + floor(code / 0x40000), 0x80 + floor(code / 0x1000) % 0x40,
      0x80 + floor(code / 0x40) % 0x40, 0x80 + code % 0x40
   )
end

-- The code point of `uXXXX` at `at`, two of them where they are a pair, and what comes after.
local function code_point(text, at)
   local digits = match(text, "^u(%x%x%x%x)", at)
   if not digits then
      expected("value", text, at)
   end
   local code = tonumber(digits, 16)
   if code < 0xd800 or code > 0xdfff then
      return code, at + 5
   end
   local low = match(text, "^\\u([dD][c-fC-F]%x%x)", at + 5)
   if code > 0xdbff or not low then
      expected("value", text, at)
   end
   return 0x10000 + (code - 0xd800) * 0x400 + tonumber(low, 16) - 0xdc00, at + 11
end

-- The string whose first character after the quotation mark is at `at`, and what comes after.
local function decode_string(text, at)
   local parts, start = nil, at
   while true do
      local stop = find(text, '["\\%c]', at)
      local mark = stop and byte(text, stop)
      if mark == 34 then
         local tail = sub(text, start, stop - 1)
         if parts then
            parts[#parts + 1] = tail
            tail = concat(parts)
         end
         return tail, stop + 1
      elseif mark == 92 then
         parts = parts or {}
         parts[#parts + 1] = sub(text, start, stop - 1)
         local letter = sub(text, stop + 1, stop + 1)
         if letter == "u" then
            local code
            code, at = code_point(text, stop + 1)
            parts[#parts + 1] = utf8(code)
         elseif UNESCAPES[letter] then
            parts[#parts + 1] = UNESCAPES[letter]
            at = stop + 2
         else
            expected("value", text, stop)
         end
         start = at
      elseif mark == 127 then
         at = stop + 1
      else
         expected("value", text, stop or #text + 1)
      end
   end
end

local function skip(text, at)
   return find(text, "[^ \t\r\n]", at) or #text + 1
end

local function decode_value(text, at, depth)
   if depth > DEPTH_MAX then
      error("Found too many nested data structures (" .. depth .. ")", 0)
   end
   local mark = byte(text, at)
   if mark == 34 then
      return decode_string(text, at + 1)
   elseif mark == 123 then
      local object = {}
      at = skip(text, at + 1)
      if byte(text, at) == 125 then
         return object, at + 1
      end
      while true do
         if byte(text, at) ~= 34 then
            expected("object key string", text, at)
         end
         local key, value
         key, at = decode_string(text, at + 1)
         at = skip(text, at)
         if byte(text, at) ~= 58 then
            expected("colon", text, at)
         end
         value, at = decode_value(text, skip(text, at + 1), depth + 1)
         object[key] = value
         at = skip(text, at)
         mark = byte(text, at)
         if mark == 125 then
            return object, at + 1
         elseif mark ~= 44 then
            expected("comma or object end", text, at)
         end
         at = skip(text, at + 1)
      end
   elseif mark == 91 then
      local array, count = {}, 0
      at = skip(text, at + 1)
      if byte(text, at) == 93 then
         return array, at + 1
      end
      while true do
         count = count + 1
         array[count], at = decode_value(text, at, depth + 1)
         at = skip(text, at)
         mark = byte(text, at)
         if mark == 93 then
            return array, at + 1
         elseif mark ~= 44 then
            expected("comma or array end", text, at)
         end
         at = skip(text, at + 1)
      end
   end
   local word = match(text, "^%a+", at)
   if word then
      if LITERALS[word] == nil then
         expected("value", text, at)
      end
      return LITERALS[word], at + #word
   end
   local number = match(text, "^%-?%d+%.?%d*[eE]?[+-]?%d*", at)
   local value = number and tonumber(number)
   if not value then
      expected("value", text, at)
   end
   return value, at + #number
end

local function decode(text)
   if type(text) == "number" then
      text = tostring(text)
   elseif type(text) ~= "string" then
      error("bad argument #1 to 'decode' (string expected, got " .. type(text) .. ")", 2)
   end
   local value, at = decode_value(text, skip(text, 1), 0)
   at = skip(text, at)
   if at <= #text then
      expected("the end", text, at)
   end
   return value
end

-- Errors as the module raises them, or returns them where it is the safe one.
local function guarded(work)
   return function(value)
      local is_done, result = pcall(work, value)
      if is_done then
         return result
      elseif is_safe then
         return nil, result
      end
      error(result, 2)
   end
end

local module = {
   _NAME = is_safe and "cjson.safe" or "cjson",
   _VERSION = "brunt's stand-in",
   null = null,
   encode = guarded(encode),
   decode = guarded(decode),
}
-- The stand-in has no settings of its own: it does what the module does without any.
for _, name in pairs({
   "decode_array_with_array_mt", "decode_invalid_numbers", "decode_max_depth",
   "encode_empty_table_as_object", "encode_escape_forward_slash", "encode_invalid_numbers",
   "encode_keep_buffer", "encode_max_depth", "encode_number_precision", "encode_sparse_array",
}) do
   module[name] = function() end
end

function module.new()
   return module
end

return module
