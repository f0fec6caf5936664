-- A counter in the path and two headers, formatted for each request.
local number = 0

request = function()
  number = number + 1
  return wrk.format("GET", "/item/" .. number .. "?of=" .. number * 2, {
    ["X-Number"] = number,
    ["Accept"] = "application/json",
  })
end
