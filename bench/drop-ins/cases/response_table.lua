-- Status, headers as the server wrote them, and body; of repeated headers the last.
local seen = 0

function response(status, headers, body)
  seen = seen + 1
  if seen <= 2 then
    local names = {}
    for name, value in pairs(headers) do
      names[#names + 1] = name .. ": " .. value
    end
    table.sort(names)
    print(type(status), status, type(headers), type(body), #body > 50)
    print(table.concat(names, "\n"))
    print(headers["Set-Cookie"], headers["set-cookie"])
    print(body)
  end
end
