#!/usr/bin/env python3
"""A server with a weakness that no good server has: `odd_server.py KIND ADDRESS PORT`.

slow-accept  accepts 100 connections per second, with a queue of one, and closes each after a reply
keeps-open   never closes first, so that the client's side of each connection lingers in TIME_WAIT
"""

import selectors
import socket
import sys
import time

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
LAST_REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
ACCEPT_PAUSE_SECONDS = 0.01
PATIENCE_SECONDS = 1


def listen(address, port, backlog):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((address, port))
    listener.listen(backlog)
    return listener


def slow_accept(address, port):
    listener = listen(address, port, 1)
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE_SECONDS)
            try:
                connection.recv(4096)
                connection.sendall(LAST_REPLY)
            except OSError:
                pass  # It gave up waiting.
        time.sleep(ACCEPT_PAUSE_SECONDS)


def keeps_open(address, port):
    listener = listen(address, port, 1024)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                selector.register(listener.accept()[0], selectors.EVENT_READ)
                continue
            try:
                request = key.fileobj.recv(4096)
                if request:
                    key.fileobj.sendall(REPLY)
                    continue
            except OSError:
                pass  # Reset by the client.
            selector.unregister(key.fileobj)
            key.fileobj.close()


if __name__ == "__main__":
    kind, address, port = sys.argv[1:]
    {"slow-accept": slow_accept, "keeps-open": keeps_open}[kind](address, int(port))
