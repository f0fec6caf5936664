"""Clients that are measured: started, waited for, and what they used."""

import os
import re
import select
import subprocess
import time
from pathlib import Path

from common import stop


def start_client(command):
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def wait_for(client, seconds_max, watch=None):
    """Waits for a client; what it used, and the largest of what `watch` told meanwhile."""
    descriptor = os.pidfd_open(client.pid)
    largest = None
    deadline = time.monotonic() + seconds_max
    try:
        ending = select.poll()
        ending.register(descriptor, select.POLLIN)
        while not ending.poll(200 if watch else seconds_max * 1e3):
            if watch:
                largest = max(filter(None, (largest, watch(client.pid))), default=None)
            if time.monotonic() > deadline:
                client.kill()
        _, status, usage = os.wait4(client.pid, 0)
        client.returncode = os.waitstatus_to_exitcode(status)
        return usage, largest
    finally:
        os.close(descriptor)
        stop(client)


def peak_kib(pid):
    """Most memory that a process has had resident; None once it has ended."""
    try:
        match = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
    except OSError:
        return None
    return int(match[1]) if match else None
