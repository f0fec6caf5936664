"""Where two runs of a script differ: requests, what was printed and written, exit codes.

Numbers are masked, since two runs have not the same; and so have they not as many replies, so that
texts may repeat a kind of line for a different number of times.
"""

import collections
import json
import re

# Requests by which two runs are compared at least, where neither ended by itself before.
REQUESTS_LEAST = 20
# With several connections, the replies' order is nobody's: what came first, up to this share of the
# shorter run, must be in all of the other.
FIRST_SHARE = 0.8
# Of random requests, kinds that are rarer may miss in a run.
RANDOM_KIND_SHARE_LEAST = 0.05
# Longer lines are taken apart.
LINE_CHARACTERS_MAX = 1000

NUMBER = re.compile(
    r"0x[0-9a-fA-F]+|(?<![\w.])-?(?:nan|inf)\b%?"
    r"|(?:(?<![\w.])-)?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?:(?:us|ms|[smhkKMGT]?B|[smhkMGT]|%)(?![A-Za-z]))?"
)
# An error in Lua, in whatever words it is wrapped: the place and the message.
LUA_ERROR = re.compile(r"(?:\./)?[\w./-]+\.lua:\d+: .*")
PANIC = re.compile(r"^PANIC: unprotected error in call to Lua API \((.*)\)$")

# The rows of wrk, to the last blank.
OWN_ROWS = (
    (r"Running ", r"Running \d+[smh] test @ \S+"),
    (r"  \d+ threads", r"  \d+ threads and \d+ connections"),
    (r"  Thread Stats", r"  Thread Stats   Avg      Stdev     Max   \+/- Stdev"),
    (r"    (?:Latency|Req/Sec) ", r"(?=.{50}$)    (?:Latency|Req/Sec)   [ \d.\-a-zMGT%]+"),
    (r"  Latency Distribution", r"  Latency Distribution"),
    (r"  \d+ requests in", r"  \d+ requests in [\d.]+(?:us|ms|s|m), +[\d.]+[KMGT]?B read"),
    (r"  Socket errors", r"  Socket errors: connect \d+, read \d+, write \d+, timeout \d+"),
    (r"  Non-2xx", r"  Non-2xx or 3xx responses: \d+"),
    (r"Requests/sec:", r"Requests/sec: (?=.{9,}$) *[\d.]+"),
)


def differences(ours, theirs, script, one_connection):
    """Where two outcomes differ, as pairs of an aspect and what to say; and how many requests were
    compared."""
    found = []
    compared, difference = requests_differ(ours, theirs, script, one_connection)
    if difference:
        found.append(("requests", difference))
    printed = [masked_lines(outcome.stdout) for outcome in (ours, theirs)]
    # With several threads, the first already print while others are set up.
    found += text_differs("stdout", *(printed if one_connection else map(sorted, printed)))
    found += text_differs("stderr", errors_of(ours.stderr), errors_of(theirs.stderr))
    for name in sorted({*ours.files, *theirs.files}):
        texts = [masked_lines(outcome.files.get(name, "")) for outcome in (ours, theirs)]
        found += text_differs(f"file {name}", *texts)
    if ours.exit_code != theirs.exit_code:
        said = ours.stderr.strip().splitlines()[-1:]
        found.append(("exit code", f"{ours.exit_code} instead of {theirs.exit_code} {said}"))
    found += [("layout", repr(row)) for row in faulty_rows(ours.stdout)]
    return found, compared


# --- Requests -------------------------------------------------------------------------------------


def normal(request):
    """A request without the order of its headers, nor that of the members of a JSON body: both are
    those of LuaJIT's hash tables."""
    body = request.body
    try:
        body = json.dumps(json.loads(body), sort_keys=True)
    except ValueError:
        pass
    return request.line, tuple(sorted(request.headers)), body


def shape(request):
    """What random requests have in common."""
    names = tuple(sorted(line.partition(b":")[0] for line in request.headers))
    fields = tuple(re.findall(rb"(?:^|&)(\w+)=", request.body))
    return re.sub(rb"\d+(\.\d+)?|(?<==)\w+", b"#", request.line), names, fields


def requests_differ(ours, theirs, script, one_connection):
    if script.random:
        return random_requests_differ(ours.arrivals, theirs.arrivals)
    mine = [normal(request) for request in ours.arrivals]
    other = [normal(request) for request in theirs.arrivals]
    compared = min(len(mine), len(other))
    if compared < REQUESTS_LEAST and len(mine) != len(other):
        return compared, f"{len(mine)} requests instead of {len(other)}"
    if one_connection:
        for number, (one, two) in enumerate(zip(mine, other), 1):
            if one != two:
                return compared, f"request {number}: {shown(one)} instead of {shown(two)}"
        return compared, None
    first = int(compared * (FIRST_SHARE if compared >= REQUESTS_LEAST else 1))
    for one, two, word in ((mine, other, "only we sent"), (other, mine, "we did not send")):
        missing = collections.Counter(one[:first]) - collections.Counter(two)
        if missing:
            request, count = next(iter(missing.items()))
            more = f" and {missing.total() - count} others" if missing.total() > count else ""
            return compared, f"{word} ({count} times){more}: {shown(request)}"
    return compared, None


def random_requests_differ(ours, theirs):
    mine, other = (collections.Counter(map(shape, requests)) for requests in (ours, theirs))
    compared = min(len(ours), len(theirs))
    for one, two, word in ((mine, other, "only we sent"), (other, mine, "we did not send")):
        for kind, count in one.items():
            if kind not in two and count >= RANDOM_KIND_SHARE_LEAST * one.total():
                return compared, f"{word}: {kind}"
    return compared, None


def shown(request):
    line, headers, body = request
    text = " | ".join((line.decode(errors="replace"),
                       *(header.decode(errors="replace") for header in headers)))
    return f"{text} | {body!r}"[:400]


# --- Texts ----------------------------------------------------------------------------------------


def masked(line):
    # Without a comma at its end, which the last of a table's fields in hash order has not.
    return re.sub(r" {2,}", " ", NUMBER.sub("#", line.replace("\t", " "))).rstrip(" ,")


def masked_lines(text):
    lines = []
    for line in text.split("\n"):
        line = masked(line)
        if len(line) > LINE_CHARACTERS_MAX:
            lines += re.split(r"(?<=[,\]}])", line)
        else:
            lines.append(line)
    return lines


def errors_of(stderr):
    """The lines of stderr but brunt's verdict; of errors in Lua, place and message alone."""
    lines = []
    # Where a module is not found, it tells all the places: those of each LuaJIT.
    for line in re.sub(r"\n(?:\t|\\u\{9\}).*", "", stderr).splitlines():
        panic = PANIC.match(line)
        line = panic[1] if panic else line
        error = LUA_ERROR.search(line)
        if error:
            lines.append(masked(error[0].removeprefix("./")))
        elif not line.startswith("brunt:"):
            lines.append(masked(line))
    return lines


def text_differs(aspect, ours, theirs):
    """Texts are equal if they have the same kinds of lines, each in its first place."""
    if ours == theirs:
        return []
    mine, other = list(dict.fromkeys(ours)), list(dict.fromkeys(theirs))
    if mine == other:
        return []
    more = [line for line in mine if line not in other]
    less = [line for line in other if line not in mine]
    if more or less:
        said = [f"{word} {line!r}" for lines, word in ((more, "has"), (less, "lacks"))
                for line in lines[:6]]
        return [(aspect, "; ".join(said))]
    return [(aspect, f"order of lines: {mine[:8]} instead of {other[:8]}")]


def faulty_rows(stdout):
    """Rows that begin as one of wrk's and are not laid out as that. What a script prints after them
    is its own."""
    for line in stdout.partition("\nTransfer/sec:")[0].split("\n"):
        for begin, whole in OWN_ROWS:
            if re.match(begin, line):
                if not re.fullmatch(whole, line):
                    yield line
                break
    last = re.search(r"^Transfer/sec:.*$", stdout, re.M)
    if last and not re.fullmatch(r"Transfer/sec: (?=.{11,}$) *[\d.]+[KMGT]?B", last[0]):
        yield last[0]


def unmet(outcome, ours):
    """What a run of brunt must show and does not."""
    found = []
    if "exit" in ours and outcome.exit_code != ours["exit"]:
        found.append(("expected exit code", f"{outcome.exit_code} instead of {ours['exit']}"))
    for stream in ("stdout", "stderr"):
        for part in ours.get(stream, ()):
            if part not in getattr(outcome, stream):
                found.append((f"expected in {stream}", repr(part)))
    count = len(outcome.arrivals)
    if count < ours.get("requests_least", 0):
        found.append(("expected requests", f"{count}, at least {ours['requests_least']}"))
    if count > ours.get("requests_most", count):
        found.append(("expected requests", f"{count}, at most {ours['requests_most']}"))
    return found
