"""Machines in network namespaces that a bridge joins, some of them with a clock of their own."""

import contextlib
import os
import subprocess

NET = "10.77.0"


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def address(names, name):
    """The address of a machine, one of `names`."""
    return f"{NET}.{names.index(name) + 1}"


@contextlib.contextmanager
def joined(names):
    """Namespaces of these names, a bridge in a further one between them: what their names begin
    with."""
    prefix = f"brunt{os.getpid()}"
    made = []

    def add(name):
        ip("netns", "add", f"{prefix}-{name}")
        made.append(f"{prefix}-{name}")
        return made[-1]

    try:
        hub = add("hub")
        ip("-n", hub, "link", "add", "bridge0", "type", "bridge")
        ip("-n", hub, "link", "set", "bridge0", "up")
        for number, name in enumerate(names, 1):
            own, port = add(name), f"port{number}"
            ip("-n", hub, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", own)
            ip("-n", hub, "link", "set", port, "master", "bridge0", "up")
            ip("-n", own, "addr", "add", f"{NET}.{number}/24", "dev", "eth0")
            ip("-n", own, "link", "set", "eth0", "up")
            ip("-n", own, "link", "set", "lo", "up")
        yield prefix
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "del", name], check=False)


def within(prefix, name, words, ahead=0):
    """The words of a command in a namespace, whose monotonic clock is `ahead` by so many seconds."""
    shift = ["unshare", "--time", "--monotonic", str(ahead), "--fork"] if ahead else []
    return ["ip", "netns", "exec", f"{prefix}-{name}", *shift, *words]
