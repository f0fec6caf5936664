function setup(thread)
  error("setup fails")
end
