"""The table of everyday situations: real servers with their defaults, and brunt with its own. The
limit of each is known beforehand, and why."""

import contextlib
import functools

import everyday_servers as servers
from situations import CLIENT, CONCURRENCY, RATE, SERVER, SHARED, SHARED_SERVER, Place, Situation

# Of a server on as many CPUs as there are.
BOTH_REASON = (
    "the server takes all CPUs that it gets, and brunt a part of them: it is at its end, and has "
    "less than it had without brunt. Either is true; more connections would give nothing"
)


def served(server, *arguments):
    """A server of `everyday_servers`, and nobody else."""
    @contextlib.contextmanager
    def arrange(bench):
        with getattr(servers, server)(bench, *arguments) as url:
            yield Place(url, ())
    return arrange


@contextlib.contextmanager
def beside_second_brunt(bench):
    with servers.node(bench, "hello") as url, servers.second_brunt(bench, url):
        yield Place(url, ())


@contextlib.contextmanager
def beside_browser(bench):
    with servers.node(bench, "hello") as url, servers.browser(url):
        yield Place(url, ())


@contextlib.contextmanager
def first_run(_bench):
    yield Place(None, ())


everyday = functools.partial(Situation, options=())

EVERYDAY = (
    everyday(
        "node", "Node, answers at once", (SERVER,), served("node", "hello"),
        reason="one thread runs the handlers, and takes some 15 µs for a request; brunt takes 6 µs "
        "on another CPU",
    ),
    everyday(
        "node-compute", "Node, computes for a millisecond", (SERVER,), served("node", "compute"),
        reason="one thread computes; brunt does next to nothing",
    ),
    everyday(
        "node-wait", "Node, waits 20 ms in an async handler", (CONCURRENCY,),
        served("node", "wait"),
        reason="64 connections wait: 3,200 requests per second, of which Node answers several "
        "times as many; the number of waits is not bounded",
    ),
    everyday(
        "go", "Go, answers at once", (SHARED, SERVER), served("go", "hello"), reason=BOTH_REASON,
    ),
    everyday(
        "go-compute", "Go, computes on all CPUs", (SERVER, SHARED), served("go", "compute"),
        reason=BOTH_REASON + "; brunt takes a few percent of a CPU",
    ),
    everyday(
        "go-semaphore", "Go, four at a time for 5 ms", (SERVER,), served("go", "semaphore"),
        reason="800 per second whatever the number of connections, with idle CPUs: 60 requests "
        "wait in the server",
    ),
    everyday(
        "go-exponential", "Go, exponential waits of 20 ms on average", (CONCURRENCY,),
        served("go", "exponential"),
        reason="nothing bounds the number of waits: twice the connections, twice the rate",
    ),
    everyday(
        "go-two-delays", "Go, 5 ms, for one in ten 80 ms", (CONCURRENCY,),
        served("go", "two-delays"),
        reason="as go-exponential: 12.5 ms on average, which nothing bounds",
    ),
    everyday(
        "go-database", "Go with PostgreSQL, a lookup for each request", (SERVER, SHARED),
        served("go_with_database", "lookup"),
        reason="service and database take all CPUs together, brunt a little; 64 requests wait for "
        "16 connections of the pool, so more would give nothing",
    ),
    everyday(
        "go-database-pool", "Go with PostgreSQL, slow statements on a pool of four", (SERVER,),
        served("go_with_database", "slow-query"),
        reason="four statements at a time, asleep for 2 to 12 ms: 570 per second whatever the "
        "number of connections, with idle CPUs",
    ),
    everyday(
        "gunicorn", "gunicorn, answers at once", (SERVER,), served("gunicorn", "hello"),
        reason="one process serves a connection after the other, and closes each after its reply",
    ),
    everyday(
        "gunicorn-database", "gunicorn with PostgreSQL, a lookup for each request", (SERVER,),
        served("gunicorn_with_database", "lookup"),
        reason="as gunicorn; for part of the time its one process waits for the database, and "
        "nobody else can use that",
    ),
    everyday(
        "apache", "Apache, a file of 100 bytes", (SHARED, SERVER), served("apache"),
        reason=BOTH_REASON,
    ),
    everyday(
        "caddy", "Caddy, a file of 100 bytes", (SHARED, SERVER), served("caddy"),
        reason=BOTH_REASON,
    ),
    everyday(
        "nginx", "nginx with a worker per CPU, a file of 100 bytes", (SHARED, SERVER),
        served("nginx_default", "auto"), reason=BOTH_REASON,
    ),
    everyday(
        "nginx-one", "nginx with one worker, a file of 100 bytes", (SERVER,),
        served("nginx_default", 1),
        reason="one worker takes some 9 µs for a request with its log, brunt 6 µs on another CPU",
    ),
    everyday(
        "second-brunt", "Node, and another brunt beside", (SHARED_SERVER, SHARED),
        beside_second_brunt,
        reason="the server is at its end, for two: this brunt's figures are those of half of it. "
        "Three programs on two CPUs may also share those",
    ),
    everyday(
        "browser", "Node, and somebody with a browser beside", (SERVER,), beside_browser,
        reason="eight requests per second of tens of thousands change nothing",
    ),
    everyday(
        "rate-below", "Node, -r 2000", (RATE,), served("node", "hello"), options=("-r", "2000"),
        reason="Node answers ten times as many",
    ),
    everyday(
        "rate-below-database", "Go with PostgreSQL, -r 500", (RATE,),
        served("go_with_database", "lookup"), options=("-r", "500"),
        reason="service and database answer many times as many",
    ),
    everyday(
        "rate-above", "Node that computes for a millisecond, -r 3000", (SERVER,),
        served("node", "compute"), options=("-r", "3000"),
        reason="one thread answers a thousand: the backlog grows throughout",
    ),
    everyday(
        "first-run", "brunt without a URL", (CLIENT, SHARED, SERVER), first_run,
        reason="brunt and its reference server cost about the same: which of them is at its end, "
        "or both, is a matter of CPUs; none waits for the network, for connections or for a rate",
    ),
)
