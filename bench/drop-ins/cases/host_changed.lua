-- Host and port in wrk change the header and not the address.
wrk.host = "elsewhere.example"
wrk.port = 8081
