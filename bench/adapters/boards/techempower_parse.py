"""What TechEmpower's parser reads of a script's text on standard input, as JSON.

    techempower_parse.py CHECKOUT FOLDER TYPE-OF-TEST

The object Results of toolset/utils/results.py is given what it asks of its owner: folders, levels,
names. Its method parse_test reads raw.txt, and statistics of the machine, which are empty here.
"""

import contextlib
import json
import sys
from types import SimpleNamespace

checkout, folder, kind = sys.argv[1:]
sys.path.insert(0, checkout)

from toolset.utils.results import Results

# Four lines that the parser skips, the groups of columns, the columns.
STATISTICS = "dool\n" * 4 + '"epoch"\n"epoch"\n'
owner = SimpleNamespace(
    config=SimpleNamespace(
        results_root=folder, timestamp="results", results_name="brunt", fw_root=checkout,
        results_environment="loopback", concurrency_levels=[], pipeline_concurrency_levels=[],
        query_levels=[], cached_query_levels=[], duration=1,
    ),
    tests=[],
)
test = SimpleNamespace(name="brunt")

with contextlib.redirect_stdout(sys.stderr):
    results = Results(owner)
    with open(results.get_raw_file(test.name, kind), "w") as raw:
        raw.write(sys.stdin.read())
    with open(results.get_stats_file(test.name, kind), "w") as statistics:
        statistics.write(STATISTICS)
    parsed = results.parse_test(test, kind)["results"]
print(json.dumps(parsed))
