-- What Rust calls for each request and each response, in place of the script's own functions. These
-- are looked up at each call, since a script may replace them, and compiled together with what is
-- around them here: from C, each of these steps would cost as much as all of them do here.
local prelude = ...
local rawequal, rawget, type = rawequal, rawget, type
local _G = _G
local request_of_init = prelude.request

-- The text that `request` gave last; what no text is equal to before the first.
local latest = {}
-- The function for responses whose parameters Rust knows.
local known

-- Begins a run: the next text is a new one, whatever it is.
function prelude.begin()
   latest = {}
   known = rawget(_G, "response")
end

-- Gives nothing where the text is that of the call before, the text alone where it is another one.
-- Where there is more to say: the text, whether it is the same, what is beside it, and whether there
-- is another function for responses.
function prelude.ask()
   local request = rawget(_G, "request")
   local text, beside
   if type(request) == "function" then
      text, beside = request()
   else
      text, beside = request_of_init()
   end
   local response = rawget(_G, "response")
   if beside == nil and rawequal(response, known) then
      if rawequal(text, latest) then
         return
      end
      if type(text) == "string" or type(text) == "number" then
         latest = text
      end
      return text
   end
   local is_same, is_other = rawequal(text, latest), not rawequal(response, known)
   if type(text) == "string" or type(text) == "number" then
      latest = text
   end
   known = response
   return text, is_same, beside, is_other
end

-- These give true where there is another function for responses now.
local function is_other()
   local response = rawget(_G, "response")
   if not rawequal(response, known) then
      known = response
      return true
   end
end

function prelude.respond_status(status)
   rawget(_G, "response")(status)
   return is_other()
end

function prelude.respond(status, headers, body)
   rawget(_G, "response")(status, headers, body)
   return is_other()
end

function prelude.respond_beside(status, headers, body, beside)
   rawget(_G, "response")(status, headers, body, beside)
   return is_other()
end

-- Milliseconds first.
function prelude.wait()
   local ms = rawget(_G, "delay")()
   return ms, is_other()
end
