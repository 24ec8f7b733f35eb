"""What tests cost. `make test-all` writes it down; `make test` runs as many cases of a function as it can afford."""

from collections import Counter
from pathlib import Path

FILE = Path(__file__).with_name("costs.txt")
BUDGET_S = 1  # of a function, in the run that wrote the file


def function_of(test_id):
    """The function of a case."""
    return test_id.split("[")[0]


def load_costs():
    """Seconds of a case by function, where all cases together cost more than the budget."""
    lines = FILE.read_text().splitlines()
    return {name: float(seconds) for seconds, name in (line.split() for line in lines if not line.startswith("#"))}


def write_costs(seconds_of_cases):
    """Writes the file anew.

    Args:
        seconds_of_cases: seconds by case, of all tests that no mark leaves to `make test-all`.
    """
    totals, counts = Counter(), Counter()
    for case, seconds in seconds_of_cases.items():
        totals[function_of(case)] += seconds
        counts[function_of(case)] += 1
    dear = sorted(name for name, total in totals.items() if counts[name] > 1 and total > BUDGET_S)
    head = "# seconds a case, of functions that cost more than the budget; make test-all writes it\n"
    FILE.write_text(head + "".join(f"{totals[name] / counts[name]:.2f} {name}\n" for name in dear))


class CostRecord:
    """Notes what each test costs, and writes it down when all have run."""

    def __init__(self):
        self.seconds = Counter()

    def pytest_runtest_logreport(self, report):
        if "slow" not in report.keywords:
            self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self, session):
        whole = not any(session.config.getoption(name) for name in ("keyword", "file_or_dir", "maxfail"))
        if whole:
            write_costs(self.seconds)
