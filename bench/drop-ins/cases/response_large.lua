-- Bodies of 300,000 bytes.
function response(status, headers, body)
  if #body ~= 300000 or body:sub(-1) ~= "x" then
    error("the body is not whole")
  end
end
