#!/usr/bin/env python3
"""A server with a thread per connection: `threaded.py HANDLER PORT`.

hello     answers at once
locked    holds a lock for a millisecond
sleeping  sleeps 20 ms
pausing   answers at once, but stops for 150 ms twice a second, as a garbage collector does
failing-N answers N of 100 requests by 500
"""

import http.server
import random
import sys
import threading
import time

LOCK = threading.Lock()
LOCKED_SECONDS, SLEEP_SECONDS = 0.001, 0.02
PAUSE_EVERY_SECONDS, PAUSE_SECONDS = 0.5, 0.15
BODY = b"x" * 100
RUNNING = threading.Event()
RUNNING.set()


def pause_now_and_then():
    while True:
        time.sleep(PAUSE_EVERY_SECONDS - PAUSE_SECONDS)
        RUNNING.clear()
        time.sleep(PAUSE_SECONDS)
        RUNNING.set()


def handle(name):
    """Does the work of a handler; the status of its reply."""
    if name == "locked":
        with LOCK:
            time.sleep(LOCKED_SECONDS)
    elif name == "sleeping":
        time.sleep(SLEEP_SECONDS)
    elif name == "pausing":
        RUNNING.wait()
    elif name.startswith("failing-"):
        return 500 if random.randrange(100) < int(name.removeprefix("failing-")) else 200
    return 200


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self):
        self.send_response_only(handle(NAME))
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


if __name__ == "__main__":
    NAME = sys.argv[1]
    if NAME == "pausing":
        threading.Thread(target=pause_now_and_then, daemon=True).start()
    Server(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
