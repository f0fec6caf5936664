-- A script without request() and response().
local unused = 1
