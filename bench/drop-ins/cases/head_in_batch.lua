-- HEAD among others in one text.
function request()
  return wrk.format("GET", "/1") .. wrk.format("HEAD", "/2") .. wrk.format("GET", "/3")
end
