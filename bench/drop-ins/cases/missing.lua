-- Only 404.
wrk.path = "/missing/page"
