function request()
  error("no first request")
end
