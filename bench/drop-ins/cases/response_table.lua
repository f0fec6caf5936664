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
    -- In one piece, since threads print at the same time.
    local kinds = table.concat({type(status), status, type(headers), type(body)}, " ")
    local cookies = tostring(headers["Set-Cookie"]) .. " " .. tostring(headers["set-cookie"])
    io.write(kinds .. "\n" .. table.concat(names, "\n") .. "\n" .. cookies .. "\n" .. body .. "\n")
  end
end
