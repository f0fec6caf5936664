-- Nothing but a body, with --latency.
wrk.method = "POST"
wrk.body = "a=1&b=2"
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
