-- Statuses, counted.
local failures = 0

response = function(status)
  if status ~= 200 then
    failures = failures + 1
  end
end
