-- wrk.connect tells that nobody listens.
function setup(thread)
  print(wrk.connect(wrk.lookup("127.0.0.1", 1)[1]))
end
