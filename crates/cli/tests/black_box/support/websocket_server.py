"""An echo on websockets, for the tests of brunt. It writes what it counts to a file."""
import asyncio, contextlib, json, os, sys, websockets

count, codes = 0, {}

async def echo(connection, path=None):
    global count
    try:
        async for message in connection:
            count += 1
            # What came before the Close frame is still to be counted.
            with contextlib.suppress(websockets.ConnectionClosed):
                await connection.send(message)
    except websockets.ConnectionClosed:
        pass
    await connection.wait_closed()
    codes[connection.close_code] = codes.get(connection.close_code, 0) + 1
    with open(sys.argv[3] + ".new", "w") as file:
        json.dump({"count": count, "codes": codes}, file)
    os.rename(sys.argv[3] + ".new", sys.argv[3])

async def main():
    async with websockets.serve(echo, sys.argv[1], int(sys.argv[2]), compression=None):
        await asyncio.Future()

asyncio.run(main())
