"""I10: limits are exact, at every commit."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import groupby

from faults.checks.base import Violation
from faults.history import Change, History
from faults.moves import Row

Gate = tuple[str | None, ...]


class Books:
    """What runs, and what may: kept from the rows alone, gate by gate."""

    def __init__(self) -> None:
        self.plans: dict[str | None, int | None] = {}
        self.tenants: dict[str | None, Row] = {}
        self.per_definition: dict[str | None, int | None] = {}
        self.running: dict[str, list[Gate]] = {}  # job: the gates it went through
        self.count: Counter[Gate] = Counter()

    def limit(self, gate: Gate) -> int | None:
        match gate[0]:
            case "tenant":
                own = self.tenants.get(gate[1], {}).get("max_running")
                plan = self.plans.get(self.tenants.get(gate[1], {}).get("plan"))
                return int(own) if own is not None else plan
            case "definition_tenant":
                return self.per_definition.get(gate[2])
            case _:
                return 1

    def gates(self, row: Row) -> list[Gate]:
        tenant = row["tenant_id"]
        found: list[Gate] = []
        if row["queue"] != "critical":  # the built-in queue that no plan counts
            found.append(("tenant", tenant))
        if self.per_definition.get(row["definition_id"]) is not None:
            found.append(("definition_tenant", tenant, row["definition_id"]))
        if row.get("concurrency_key"):
            found.append(("key", tenant, row["concurrency_key"]))
        return found

    def take(self, change: Change) -> list[Gate]:
        """Bring the books up to date; the gates that a job went through by this."""
        row = change.row
        match change.table:
            case "plan":
                self.plans[row["name"]] = _number(row["max_running"])
            case "tenant":
                self.tenants[row["id"]] = row
            case "definition":
                self.per_definition[row["id"]] = _number(row["max_running_per_tenant"])
            case "job":
                job = str(row["id"])
                runs = change.what != "delete" and row["status"] == "running"
                if runs and job not in self.running:
                    self.running[job] = self.gates(row)
                    self.count.update(self.running[job])
                    return self.running[job]
                if not runs and job in self.running:
                    self.count.subtract(self.running.pop(job))
            case _:
                pass
        return []


def limits_are_exact(history: History) -> Iterator[Violation]:
    """I10: after no commit that starts a job do more run than may; and the counters are right."""
    books = Books()
    holders: dict[Gate, dict[str, Change]] = defaultdict(dict)
    for _, some in groupby(history.changes, key=lambda each: each.lsn):
        changes = list(some)
        entered: set[Gate] = set()
        for change in changes:
            gates = books.take(change)
            entered.update(gates)
            for gate in gates:
                holders[gate][str(change.row["id"])] = change
        for gate in entered:
            limit = books.limit(gate)
            if limit is not None and books.count[gate] > limit:
                who = [change for job, change in holders[gate].items() if job in books.running]
                words = f"{books.count[gate]} run at the gate {gate}, {limit} may"
                yield Violation(words, tuple(who))
        # The last row of a transaction is the one that others see.
        counters = {_gate(c.row): c for c in changes if c.table == "gate" and c.what != "delete"}
        counters.pop((), None)
        for gate, change in counters.items():
            if books.count[gate] != int(change.row["running"] or 0):
                words = f"the gate {gate} counts {change.row['running']}, "
                yield Violation(f"{words}{books.count[gate]} run", (change,))


def _gate(row: Row) -> Gate:
    match row["scope"]:
        case "tenant":
            return ("tenant", row["tenant_id"])
        case "definition_tenant":
            return ("definition_tenant", row["tenant_id"], row["definition_id"])
        case "key":
            return ("key", row["tenant_id"], row["concurrency_key"])
        case _:
            return ()


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)
