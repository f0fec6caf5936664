-- A Host in wrk.headers stays; so does the order of init and wrk.init.
wrk.headers["Host"] = "given.example"

function init(arguments)
  print("init", wrk.headers["Host"])
  wrk.headers["X-Init"] = "yes"
end
