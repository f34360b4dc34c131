"""What schemas and payloads cost together, each pair in a process of its own: run by test_bounds.

The memory is the library's, which Python does not see: only the process as a whole shows it.
"""

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

from fairlane import schemas
from fairlane.errors import DefinitionInvalid

SIZE = 262_144

NAMES = [f"n{nth}" for nth in range(30)]
MANY = [f"n{nth}" for nth in range(500)]


def known() -> Iterator[tuple[str, Any, Any]]:
    """One by one, what has been seen to take too much."""
    rows: dict[str, Any] = {
        "required": {"required": NAMES},
        "dependent": {"dependentRequired": {"a": NAMES}},
        "one of many": {"oneOf": [{"required": [name]} for name in NAMES]},
        "any of many": {"anyOf": [{"items": {"required": NAMES}}, {"required": NAMES}]},
        "all of many": {"allOf": [{"required": [name]} for name in NAMES]},
        "enum": {"enum": [f"a country named {nth}" for nth in range(2500)]},
        "const": {"const": "x" * 60_000},
        "not": {"not": {"enum": [{}, {"a": 1}, *(f"{nth}" for nth in range(8000))]}},
        "a long name": {"$ref": "#/$defs/" + "x" * 20_000},
        "if": {"if": {}, "then": {"required": NAMES}},
        "left over": {"unevaluatedProperties": False, "required": NAMES},
    }
    for name, row in rows.items():
        schema = {"items": row, "$defs": {"x" * 20_000: {"required": NAMES}}}
        if name != "a long name":
            del schema["$defs"]
        yield f"{name}, in rows", schema, [{}] * 87_000
        yield f"{name}, filled rows", schema, [{"a": 1}] * 29_000
        yield (
            f"{name}, under a long name",
            {"additionalProperties": schema},
            {"y" * 60_000: [{}] * 60_000},
        )
    wide = {f"k{nth}": 1 for nth in range(20_000)}
    whole: dict[str, Any] = {
        "required": {"required": MANY},
        "any": {"anyOf": [{"required": MANY}, {"required": MANY}]},
        "names": {"propertyNames": {"anyOf": [{"maxLength": 1}, {"pattern": "^x"}]}},
        "patterns": {"patternProperties": {"^k": {"type": "string"}}},
        "no others": {"additionalProperties": False},
        "others": {"additionalProperties": {"type": "string"}},
        "left over": {"unevaluatedProperties": False},
        "by pattern": {"patternProperties": {"^x": {}}, "additionalProperties": False},
    }
    for name, schema in whole.items():
        yield f"{name}, of a wide object", schema, wide


def nested(schema: Any, random: random.Random) -> Any:
    match random.randrange(12):
        case 0:
            return {"items": schema}
        case 1:
            return {"anyOf": [schema, {"items": schema}]}
        case 2:
            return {"oneOf": [schema, {"type": "string"}, {"properties": {"a": schema}}]}
        case 3:
            return {"allOf": [schema] * random.randint(1, 5)}
        case 4:
            return {"additionalProperties": schema, "required": random.sample(MANY, 20)}
        case 5:
            return {"properties": {"a": schema, "b": schema}, "additionalProperties": False}
        case 6:
            return {"if": {"type": "object"}, "then": schema, "else": {"items": schema}}
        case 7:
            return {"items": {"$ref": "#"}, **schema}
        case 8:
            return {"not": {"not": schema}, "minItems": 3}
        case 9:
            return {"contains": schema, "propertyNames": {"pattern": "^[b-z]"}}
        case 10:
            return {"unevaluatedItems": False, "anyOf": [schema, {"prefixItems": [schema]}]}
        case _:
            return {"dependentSchemas": {"a": schema}, "prefixItems": [schema], "items": schema}


def value(random: random.Random) -> Any:
    """As large as a payload may be, of one small thing again and again."""
    small: Any = random.choice([{}, [], 1, "", None, {"a": 1}, {"a": {"a": {}}, "b": []}])
    for _ in range(random.randrange(4)):
        small = random.choice([[small], {"a": small}, {"a": small, "b": small}, [small, 1, {}]])
    many = SIZE // (len(json.dumps(small, separators=(",", ":"))) + 10)
    large: Any = random.choice([[small] * many, {f"k{nth}": small for nth in range(many)}])
    for _ in range(random.choice([0, 0, 1, 2, 40, 80])):
        large = random.choice([[large], {"a": large}])
    return large


def drawn(seed: int) -> tuple[str, Any, Any]:
    own = random.Random(seed)
    schema: Any = own.choice(
        [{"required": NAMES}, {"type": "integer"}, {"enum": MANY}, {"required": MANY}, False]
    )
    for _ in range(own.randint(1, 6)):
        schema = nested(schema if isinstance(schema, dict) else {"not": {}}, own)
    return f"drawn by {seed}", schema, value(own)


def measured(schema: Any, payload: Any) -> dict[str, Any] | None:
    try:
        compiled = schemas.compile(schema)
    except DefinitionInvalid:
        return None
    compiled.faults({})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    compiled._validator.is_valid(payload)
    asked = time.process_time()
    faults = compiled.faults(payload)
    ended = time.process_time()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {
        "megabytes": grown / 1024,
        "validating": asked - began,
        "telling": ended - asked - (asked - began),
        "faults": [str(fault) for fault in faults[:3]],
        "count": len(faults),
    }


def apart(name: str, schema: Any, payload: Any) -> None:
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        if status:
            print(json.dumps({"name": name, "ended": status}), flush=True)
        return
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    signal.alarm(30)
    found = measured(schema, payload)
    if found is not None:
        print(json.dumps({"name": name, **found}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    for each in known():
        apart(*each)
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        apart(*drawn(seed))
