local settings = nil
print("before")
wrk.path = settings.path
