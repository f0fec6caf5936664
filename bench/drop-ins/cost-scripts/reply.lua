-- Headers and bodies of the replies, looked at.
local length = 0

response = function(status, headers, body)
  length = length + #body + #headers["Server"]
end
