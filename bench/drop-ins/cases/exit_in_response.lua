function response()
  print("leaving")
  os.exit(3)
end
