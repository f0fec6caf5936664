"""Where two runs of a command line differ: a tool's, and brunt's in its place."""

import re

# What ab says of its own times depends on how they vary.
DOUBTS = re.compile(
    r"(?:WARNING|ERROR): The median and mean .*\n +(?:These results|deviation apart).*\n"
)
DATE = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}")
NUMBER = re.compile(
    r"(?<![A-Za-z.])\d+(?:\.\d+)?(?:e-\d+)?"
    r"(?:(?:us|ms|s|m|h|k|M|G|[KMG]?B(?:/s)?|%)(?![A-Za-z]))?|-nan%?"
)
# HdrHistogram V2 in base64.
BUCKETS = re.compile(r'"HISTFAA[^"]*"')
UNITS = re.compile(r"\b(?:bytes|KiB|MiB)(?= \(|$)", re.M)
# Of what is sent at a rate, as much comes more or less in a second.
COUNT_RATIO_MAX = 1.3
# Of what is sent as fast as can be, some comes.
FLOOD_RATIO_MAX = 1_000


class Table:
    """What is known of a tool: see `command-lines`."""

    def __init__(self, fields):
        self.options = fields["options"]
        self.lines = fields["lines"]
        self.reads = {name: re.compile(pattern, re.M) for name, pattern in fields["reads"].items()}
        self.counts = set(fields["counts"])
        self.header_order = fields.get("header_order", True)
        self.by_connection = fields.get("by_connection", False)
        own = ["brunt: ", *fields.get("only_theirs", [])]
        self._own = re.compile("|".join(f"(?:{pattern})" for pattern in own))

    def unnamed_options(self):
        """Documented options that no line has."""
        words = [word for case in self.lines for word in case["line"].split()]
        clusters = [word[1:] for word in words if re.match(r"-[^-]", word)]
        def is_used(option):
            if option.startswith("--"):
                return any(word.partition("=")[0] == option for word in words)
            return any(option[1] in cluster for cluster in clusters)
        return [spellings for spellings in self.options
                if not any(map(is_used, spellings.split("|")))]

    def masked(self, text):
        """Lines with numbers masked, without those that only one of the two has; what is repeated
        stands once."""
        lines = [line for line in text.splitlines(True) if not self._own.match(line)]
        text = UNITS.sub("UNIT", DATE.sub("DATE", DOUBTS.sub("", "".join(lines))))
        text = BUCKETS.sub("BUCKETS", text)
        masked = []
        for line in NUMBER.sub("#", text).split("\n"):
            line = re.sub(r"[ \t]+", " ", line).rstrip()
            if not masked or line != masked[-1] or "#" not in line:
                masked.append(line)
        return masked

    def read(self, outcome):
        """What the usual expressions find in a report."""
        found = {name: pattern.search(outcome.stdout) for name, pattern in self.reads.items()}
        return {name: match[1] for name, match in found.items() if match}


def number(text):
    return float(re.match(r"-?[\d.]*", text)[0] or 0)


def is_timed(case):
    """Whether how much is sent depends on time."""
    return case.get("timed", False)


def requests_of(outcome, case, is_ordered):
    pattern = re.compile(case["random"]) if "random" in case else None
    counts = {}
    for text, count in outcome.requests.items():
        if pattern:
            text = pattern.sub("#", text)
        if not is_ordered:
            head, blank, body = text.partition("\r\n\r\n")
            line, *headers = head.split("\r\n")
            text = "\r\n".join([line, *sorted(headers)]) + blank + body
        counts[text] = counts.get(text, 0) + count
    return dict.fromkeys(counts, 0) if is_timed(case) else counts


def requests_differ(ours, theirs, case, is_ordered):
    ours, theirs = (requests_of(outcome, case, is_ordered) for outcome in (ours, theirs))
    if ours == theirs:
        return None
    for text in sorted({*ours, *theirs}):
        if ours.get(text) != theirs.get(text):
            said = [f"{seen.get(text, 'never')} times" if seen.get(text) != 0 else "some times"
                    for seen in (ours, theirs)]
            return f"{text!r} {said[0]} instead of {said[1]}".replace("never times", "never")
    return None


def connections_differ(ours, theirs, case):
    """Where the requests of single connections differ, and their order."""
    mine, other = ours.connections, theirs.connections
    if is_timed(case) or mine is None or other is None or mine == other:
        return None
    counts = [[len(re.findall(r" HTTP/[12.]+(?:\r|$)", requests, re.M)) for requests in seen]
              for seen in (mine, other)]
    return f"{counts[0]} requests on connections instead of {counts[1]}, or in another order"


def streams_differ(ours, theirs, case):
    """Where the streams that a server saw differ."""
    pattern = re.compile(case["random"]) if "random" in case else None
    def seen(outcome):
        return sorted((upgrade, pattern.sub("#", data) if pattern else data, count)
                      for upgrade, data, count in outcome.streams)
    mine, other = seen(ours), seen(theirs)
    # The real one opens more than it is to, at times.
    while len(other) > len(mine):
        other.remove(min(other, key=lambda one: one[2]))
    if len(mine) != len(other):
        return f"{len(mine)} connections instead of {len(other)}"
    # Beside those that are used, few are made and closed again.
    if not other and abs(ours.empty - theirs.empty) > 1:
        return f"{ours.empty} connections without a byte instead of {theirs.empty}"
    is_rated = re.search(r"(?:^| )-\w*r ?\d|--message-rate|--channel-bandwidth", case["line"])
    ratio = COUNT_RATIO_MAX if is_rated else FLOOD_RATIO_MAX
    for (upgrade, one, count), (upgrade_of_other, two, count_of_other) in zip(mine, other):
        if upgrade != upgrade_of_other:
            return f"{upgrade} instead of {upgrade_of_other}"
        length = min(len(one), len(two))
        if one[:length] != two[:length]:
            at = next(at for at in range(length) if one[at] != two[at])
            begin = max(0, at - 20)
            return f"{one[begin:at + 40]!r} instead of {two[begin:at + 40]!r} at {at}"
        if max(count, count_of_other) > ratio * min(count, count_of_other):
            return f"{count} bytes or messages instead of {count_of_other}"
    return None


def texts_differ(one, other):
    if one == other:
        return None
    pairs = [(a, b) for a, b in zip(one, other) if a != b] or [("", "")]
    lengths = f"{len(one)} lines instead of {len(other)}; " if len(one) != len(other) else ""
    return f"{lengths}first {pairs[0][0]!r} instead of {pairs[0][1]!r}"


def counts_differ(ours, theirs, table, case):
    """Where what is read of the reports differs."""
    mine, other = table.read(ours), table.read(theirs)
    if mine.keys() != other.keys():
        return f"{sorted(mine)} are read instead of {sorted(other)}"
    for name, value in mine.items():
        if name not in table.counts:
            continue
        one, two = (number(text) > 0 if is_timed(case) else text for text in (value, other[name]))
        if one != two:
            return f"{name} is {value} instead of {other[name]}"
    return None


def differences(ours, theirs, table, case):
    """What differs between brunt in a tool's place and the tool, by aspect."""
    found = {
        "exit code": None if ours.exit_code == theirs.exit_code
        else f"{ours.exit_code} instead of {theirs.exit_code}",
        "requests": requests_differ(ours, theirs, case, table.header_order),
        "connections": connections_differ(ours, theirs, case) if table.by_connection else None,
        "streams": streams_differ(ours, theirs, case),
        "counts": counts_differ(ours, theirs, table, case),
        "stdout": texts_differ(table.masked(ours.stdout), table.masked(theirs.stdout)),
        "stderr": texts_differ(table.masked(ours.stderr), table.masked(theirs.stderr)),
    }
    for name in sorted({*ours.files, *theirs.files}):
        mine, other = (table.masked(outcome.files.get(name, "(none)"))
                       for outcome in (ours, theirs))
        found[f"file {name}"] = texts_differ(mine, other)
    return {aspect: text for aspect, text in found.items() if text}
