"""An ASGI application: `hundred` answers at once, with 100 bytes."""

HUNDRED = b"x" * 100
HEADERS = [(b"content-type", b"text/plain"), (b"content-length", b"100")]


async def hundred(scope, receive, send):
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    # Hypercorn closes a connection whose request was not read to its end.
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": HUNDRED})
