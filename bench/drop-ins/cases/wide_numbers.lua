-- Values for stdout that are not strings.
function init()
  print(1e15, 1e100, 0.1, -0.0, 1/0, -1/0, 2^53, 3, 10/2)
  print(nil, true, {} ~= {}, ("x"):rep(3))
end
