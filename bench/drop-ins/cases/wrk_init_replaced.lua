-- Without wrk's own wrk.init there is no wrk.request.
wrk.init = function(arguments)
  print("own init")
end
