-- What the states print comes in the order of the calls, around wrk's own lines.
print("load")
io.write("written at load\n")

function setup()
  print("setup")
end

function init()
  print("init")
end

function response()
  if not seen then
    seen = true
    print("response")
  end
end

function done()
  io.write("done, without an end of line: $")
  io.stderr:write("done, on stderr\n")
end
