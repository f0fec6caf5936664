"""A server by aiohttp that answers at once, with 100 bytes: `aiohttp_server.py PORT`."""

import sys

from aiohttp import web

HUNDRED = b"x" * 100


async def hundred(request):
    return web.Response(body=HUNDRED, content_type="text/plain")


application = web.Application()
application.add_routes([web.get("/", hundred)])
web.run_app(application, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
