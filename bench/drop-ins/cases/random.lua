-- Random numbers without a seed are the same in every thread and every run.
local function text(length)
  local characters = {}
  for i = 1, length do
    characters[i] = string.char(math.random(97, 122))
  end
  return table.concat(characters)
end

function request()
  local path = string.format("/%s/%d/%.3f", text(8), math.random(1000), math.random())
  if math.random() < 0.3 then
    return wrk.format("POST", path, {["X-Random"] = math.random(10)}, text(math.random(40)))
  end
  return wrk.format("GET", path)
end
