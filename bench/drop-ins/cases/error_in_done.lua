function done(summary, latency, requests)
  print("done begins")
  return summary.nothing.field
end
