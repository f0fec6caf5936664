"""WSGI applications: `hello` answers at once, `hundred` does so with 100 bytes, `lookup` asks
PostgreSQL first, over one connection, whose address stands in DATABASE."""

import os
import random

ROWS = 10_000
HEADERS = [("Content-Type", "text/plain")]
HUNDRED = b"x" * 100

connection = None


def hello(environ, start_response):
    start_response("200 OK", HEADERS)
    return [b"Hello, world!\n"]


def hundred(environ, start_response):
    start_response("200 OK", [*HEADERS, ("Content-Length", str(len(HUNDRED)))])
    return [HUNDRED]


def lookup(environ, start_response):
    global connection
    if connection is None:
        import psycopg2

        connection = psycopg2.connect(os.environ["DATABASE"])
        connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM items WHERE id = %s", (random.randint(1, ROWS),))
        (name,) = cursor.fetchone()
    start_response("200 OK", HEADERS)
    return [name.encode()]
