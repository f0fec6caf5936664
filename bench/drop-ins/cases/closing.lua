-- The server closes the connection after each reply.
local number = 0

function request()
  number = number + 1
  return wrk.format("GET", "/close/" .. number)
end
