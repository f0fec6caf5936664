-- wrk.request assigned at load does not last; request = wrk.request at load is nil.
wrk.request = function()
  return "GET /never HTTP/1.1\r\n\r\n"
end
local taken = wrk.init
print(type(taken))
