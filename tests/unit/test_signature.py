"""The payload of a task comes from its type hints: JSON out, the same values back in."""

import dataclasses
import enum
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import Fairlane, JobContext, Task, schemas
from fairlane.errors import PayloadInvalid
from fairlane.signature import OPTIONS, ArgumentsInvalid, TaskInvalid

ReportId = NewType("ReportId", int)


class Format(enum.Enum):
    PDF = "pdf"
    HTML = "html"


@dataclasses.dataclass
class Line:
    text: str
    amount: Decimal = Decimal("1.50")
    tags: list[str] = dataclasses.field(default_factory=list)


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Address(TypedDict):
    city: str


class Payload(msgspec.Struct):
    """A class of the user's with the name of ours."""

    deep: int


def task(function: Callable[..., Any], key: str = "work") -> Task[..., Any]:
    return Fairlane("postgresql://nowhere").job(key)(function)


def refusal(function: Callable[..., Any]) -> str:
    with pytest.raises(TaskInvalid) as refused:
        task(function)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def faults(work: Task[..., Any], **arguments: Any) -> dict[str, str]:
    with pytest.raises(ArgumentsInvalid) as refused:
        work.payload(**arguments)
    assert "\n" not in str(refused.value)
    return dict(refused.value.faults)


# The schema -------------------------------------------------------------------


def test_the_schema_says_what_the_hints_say() -> None:
    def work(ctx: JobContext, report_id: int, fmt: str = "pdf") -> dict[str, Any]:
        return {}

    assert task(work).signature.schema == {
        "type": "object",
        "properties": {
            "report_id": {"type": "integer"},
            "fmt": {"type": "string", "default": "pdf"},
        },
        "required": ["report_id"],
        "additionalProperties": False,
    }


def test_types_of_the_users_own_are_in_the_schema_with_their_defaults() -> None:
    def work(
        fmt: Format = Format.PDF,
        lines: list[Line] = [],  # noqa: B006
        at: datetime | None = None,
        count: Annotated[int, msgspec.Meta(ge=1, description="how many")] = 1,
        payload: Payload = Payload(1),  # noqa: B008
    ) -> None: ...

    schema = task(work).signature.schema

    assert schema["required"] == []
    assert schema["properties"]["fmt"]["default"] == "pdf"
    assert schema["properties"]["lines"]["default"] == []
    assert schema["properties"]["at"]["default"] is None
    assert schema["properties"]["payload"]["default"] == {"deep": 1}
    assert schema["properties"]["count"] == {
        "type": "integer",
        "minimum": 1,
        "description": "how many",
        "default": 1,
    }
    # Every reference leads somewhere.
    references = re.findall(r"#/\$defs/([^']+)'", str(schema))
    assert {"Format", "Line"} <= set(references) <= set(schema["$defs"])


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def work() -> None: ...

    assert task(work).signature.schema == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert task(work).payload() == {}


@pytest.mark.parametrize("typed", [False, True])
def test_keyword_arguments_allow_more_properties(typed: bool) -> None:
    def loose(x: int, **more: Any) -> None: ...
    def strict(x: int, **more: int) -> None: ...

    work = task(strict if typed else loose)

    assert work.signature.schema["additionalProperties"] == ({"type": "integer"} if typed else True)
    assert work.payload(x=1, y=2) == {"x": 1, "y": 2}
    assert work.arguments({"x": 1, "y": 2}) == {"x": 1, "y": 2}
    if typed:
        assert faults(work, x=1, y="2") == {"/y": "Expected `int`, got `str`"}


# There and back ---------------------------------------------------------------


def everything(
    report_id: ReportId,
    when: datetime,
    day: date,
    wait: timedelta,
    ref: UUID,
    fmt: Format,
    price: Decimal,
    raw: bytes,
    lines: list[Line],
    point: Point | None,
    address: Address,
    mode: Literal["fast", "slow"],
    by_number: dict[int, float],
    pair: tuple[int, str],
    names: set[str],
    either: int | str,
    anything: Any,
) -> None: ...


ANYTHING = {
    "report_id": ReportId(7),
    "when": datetime(2030, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
    "day": date(2030, 1, 2),
    "wait": timedelta(hours=1, seconds=0.5),
    "ref": UUID(int=7),
    "fmt": Format.HTML,
    "price": Decimal("19.90"),
    "raw": b"\x00\xff",
    "lines": [Line("a", tags=["x"]), Line("b", Decimal(2))],
    "point": Point(1),
    "address": {"city": "Basel"},
    "mode": "slow",
    "by_number": {1: 0.5},
    "pair": (1, "x"),
    "names": {"n"},
    "either": "text",
    "anything": {"nested": [1, None, "x"]},
}


def test_typed_arguments_become_plain_json_and_come_back_typed() -> None:
    work = task(everything)

    payload = work.payload(**ANYTHING)

    assert payload == {
        "report_id": 7,
        "when": "2030-01-02T03:04:05.000678Z",
        "day": "2030-01-02",
        "wait": "PT3600.5S",
        "ref": "00000000-0000-0000-0000-000000000007",
        "fmt": "html",
        "price": "19.90",
        "raw": "AP8=",
        "lines": [
            {"text": "a", "amount": "1.50", "tags": ["x"]},
            {"text": "b", "amount": "2", "tags": []},
        ],
        "point": {"x": 1, "y": 0},
        "address": {"city": "Basel"},
        "mode": "slow",
        "by_number": {"1": 0.5},
        "pair": [1, "x"],
        "names": ["n"],
        "either": "text",
        "anything": {"nested": [1, None, "x"]},
    }
    assert work.arguments(payload) == ANYTHING


def test_arguments_may_come_as_json_already() -> None:
    work = task(everything)
    payload = work.payload(**ANYTHING)

    assert work.payload(**payload) == payload


@given(
    st.fixed_dictionaries(
        {
            "number": st.integers(),
            "share": st.floats(allow_nan=False, allow_infinity=False),
            "text": st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")),
            "when": st.datetimes(timezones=st.just(UTC)),
            "ref": st.uuids(),
            "maybe": st.none() | st.dates(),
            "many": st.lists(st.sampled_from(Format)),
        }
    )
)
def test_whatever_fits_the_hints_comes_back_as_it_was(arguments: dict[str, Any]) -> None:
    assert TYPED.arguments(TYPED.payload(**arguments)) == arguments


def _typed(
    number: int,
    share: float,
    text: str,
    when: datetime,
    ref: UUID,
    maybe: date | None,
    many: list[Format],
) -> None: ...


TYPED = task(_typed)


def test_defaults_are_in_the_payload_and_stand_in_where_sql_left_them_out() -> None:
    def work(x: int, fmt: Format = Format.PDF, tags: list[str] = ["a"]) -> None: ...  # noqa: B006

    found = task(work)

    assert found.payload(x=1) == {"x": 1, "fmt": "pdf", "tags": ["a"]}
    assert found.arguments({"x": 1}) == {"x": 1, "fmt": Format.PDF, "tags": ["a"]}


@pytest.mark.parametrize("open_ended", [False, True])
def test_one_run_cannot_spoil_the_default_of_the_next(open_ended: bool) -> None:
    def closed(tags: list[str] = ["a"]) -> None: ...  # noqa: B006
    def opened(tags: list[str] = ["a"], **more: Any) -> None: ...  # noqa: B006

    work = task(opened if open_ended else closed)

    work.arguments({})["tags"].append("b")

    assert work.arguments({}) == {"tags": ["a"]}
    assert work.payload() == {"tags": ["a"]}


def test_a_default_of_none_makes_the_parameter_optional() -> None:
    def work(note: str = None) -> None: ...  # type: ignore[assignment] # noqa: RUF013

    assert task(work).payload() == {"note": None}
    assert task(work).payload(note="x") == {"note": "x"}


def test_a_parameter_without_a_hint_takes_any_json_and_nothing_else() -> None:
    def work(data) -> None: ...  # type: ignore[no-untyped-def]

    found = task(work)

    assert found.payload(data=(1, {"x": None})) == {"data": [1, {"x": None}]}
    with pytest.raises(PayloadInvalid, match="has a datetime at /data; JSON has objects"):
        found.payload(data=datetime.now(UTC))


# Arguments that do not fit ----------------------------------------------------


def test_every_fault_is_told_with_its_pointer() -> None:
    def work(
        report_id: int, lines: list[Line], fmt: Format, by: dict[str, list[int]], x: float
    ) -> None: ...

    lines = [{"text": "a"}, {"text": 7}]
    found = faults(task(work), report_id="7", lines=lines, fmt="doc", by={"a": [1, "2"]}, typo=1)

    assert found == {
        "/report_id": "Expected `int`, got `str`",
        "/lines/1/text": "Expected `str`, got `int`",
        "/fmt": "Invalid enum value 'doc'",
        "/by": "Expected `int`, got `str`",
        "/x": "is missing",
        "/typo": "the task has no such parameter",
    }


def test_the_error_is_a_payload_error_and_names_the_task() -> None:
    def work(report_id: int) -> None: ...

    with pytest.raises(PayloadInvalid) as refused:
        task(work, "reports.generate").payload(report_id=None)

    assert str(refused.value) == (
        'the payload of "reports.generate" does not fit: /report_id: Expected `int`, got `null`'
    )


def test_a_payload_from_elsewhere_is_held_to_the_same() -> None:
    def work(x: int, fmt: str = "pdf") -> None: ...

    wrong: list[tuple[dict[str, Any], list[str]]] = [
        ({"x": 1.5, "y": 1}, ["/x", "/y"]),
        ({"x": 1, "y": 1}, ["/y"]),
    ]
    for payload, pointers in wrong:
        with pytest.raises(ArgumentsInvalid) as refused:
            task(work).arguments(payload)
        assert [fault.pointer for fault in refused.value.faults] == pointers


@pytest.mark.parametrize("value", [True, "1", 1.0, None, [1]])
def test_a_number_is_a_number(value: Any) -> None:
    def work(x: int) -> None: ...

    assert list(faults(task(work), x=value)) == ["/x"]


def test_a_value_that_json_has_no_form_for_is_a_fault_like_others() -> None:
    def work(x: int, y: list[str]) -> None: ...

    assert faults(task(work), x=object(), y=7) == {
        "/x": "JSON has no object",
        "/y": "Expected `array`, got `int`",
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_json_has_not_is_refused(value: float) -> None:
    def work(x: float) -> None: ...

    with pytest.raises(PayloadInvalid, match="at /x; JSON has no such number"):
        task(work).payload(x=value)


def test_the_context_cannot_come_with_the_payload() -> None:
    def work(ctx: JobContext, **more: Any) -> None: ...

    assert faults(task(work), ctx=1) == {"/ctx": "the task has no such parameter"}


# Functions that cannot be tasks -----------------------------------------------


def test_the_context_comes_first_by_hint_or_by_name_and_is_no_argument() -> None:
    def by_hint(job: JobContext, x: int) -> None: ...
    def by_name(ctx, x: int) -> None: ...  # type: ignore[no-untyped-def]
    def maybe(job: JobContext | None, x: int) -> None: ...
    def as_text(job: "JobContext", x: "int") -> None: ...
    def without(x: int) -> None: ...

    for function in (by_hint, by_name, maybe, as_text):
        assert task(function).takes_context
        assert task(function).payload(x=1) == {"x": 1}
    assert not task(without).takes_context


def test_a_context_in_another_place_is_refused() -> None:
    def second(x: int, job: JobContext) -> None: ...
    def other(ctx: int) -> None: ...

    assert "JobContext, which must be the first parameter" in refusal(second)
    assert 'the parameter "ctx" is the job\'s context' in refusal(other)


@pytest.mark.parametrize("name", OPTIONS)
def test_a_parameter_named_like_an_option_of_enqueue_is_refused(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def work({name}: str): ...", scope)

    said = refusal(scope["work"])

    assert f'the parameter "{name}" has the name of an option of enqueue' in said


def test_a_hint_that_json_cannot_carry_is_refused_with_the_parameters_name() -> None:
    class Session:
        pass

    def custom(session: Session) -> None: ...
    def nested(x: int, sessions: dict[str, list[Session]]) -> None: ...
    def union(x: date | UUID) -> None: ...
    def more(**sessions: Session) -> None: ...
    def unknown(x: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821

    assert 'the parameter "session" has a type hint that JSON cannot carry' in refusal(custom)
    assert 'the parameter "sessions" has a type hint' in refusal(nested)
    assert 'the parameter "x" has a type hint' in refusal(union)
    assert 'the parameter "sessions" has a type hint' in refusal(more)
    assert "\"x\" has a type hint that cannot be read: name 'Nowhere'" in refusal(unknown)


def test_a_pattern_that_could_take_for_ever_is_refused_with_its_place() -> None:
    def fetch(code: Annotated[str, msgspec.Meta(pattern="^(?=.*[0-9]).+$")]) -> None: ...

    with pytest.raises(TaskInvalid, match="/properties/code/pattern: the pattern looks around"):
        Fairlane().job("fetch")(fetch)


@pytest.mark.parametrize(
    "wait", [timedelta(seconds=0.5), timedelta(days=-1, hours=3), timedelta(8)]
)
def test_a_length_of_time_fits_the_schema_as_it_is_written(wait: timedelta) -> None:
    def fetch(wait: timedelta = wait) -> None: ...

    task = Fairlane().job("fetch")(fetch)

    for payload in (task.payload(), task.payload(wait=timedelta(microseconds=1))):
        assert schemas.accept("fetch", task.signature.schema, payload) == payload
    with pytest.raises(PayloadInvalid, match="/wait: must match"):
        schemas.accept("fetch", task.signature.schema, {"wait": "soon"})


def test_a_default_that_does_not_fit_is_refused() -> None:
    def wrong(x: int = "1") -> None: ...  # type: ignore[assignment]
    def no_json(x: Any = object()) -> None: ...  # noqa: B008
    def infinite(x: float = float("inf")) -> None: ...

    for function in (wrong, no_json, infinite):
        assert 'the parameter "x" has a default that does not fit' in refusal(function)


def test_a_function_that_cannot_be_called_by_name_is_refused() -> None:
    def star(*numbers: int) -> None: ...
    def positional(x: int, /) -> None: ...
    def method(self, x: int) -> None: ...  # type: ignore[no-untyped-def]

    assert "arguments go by name" in refusal(star)
    assert "is positional only" in refusal(positional)
    assert "a task is a function of its own" in refusal(method)


def test_what_is_not_a_plain_function_is_refused() -> None:
    def generator() -> Any:
        yield 1

    async def stream() -> Any:
        yield 1

    class Callme:
        def __call__(self) -> None: ...

    assert "return instead" in refusal(generator)
    assert "return instead" in refusal(stream)
    assert "decorate a function" in refusal(Callme())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "two words"}, "the key must be"),
        ({"key": ""}, "the key must be"),
        ({"version": "v 1"}, 'the version "v 1" must be'),
        ({"timeout": 0}, "timeout must be whole seconds, 1 or more, not 0"),
        ({"timeout": 1.5}, "timeout must be whole seconds"),
        ({"retry_delays": [1, -1]}, "retry_delays must be whole seconds, 0 or more, not -1"),
        ({"isolation": "fork"}, 'isolation must be "thread" or "process"'),
        ({"memory_mb": 100}, 'memory_mb needs isolation="process"'),
        ({"redact": ["token"]}, 'redact takes JSON pointers like "/token"'),
    ],
)
def test_an_option_out_of_range_is_refused_where_it_is_written(
    options: dict[str, Any], message: str
) -> None:
    def work() -> None: ...

    with pytest.raises(TaskInvalid, match=re.escape(message)):
        Fairlane("postgresql://nowhere").job(**{"key": "work", **options})(work)


def test_two_tasks_of_one_key_and_version_are_refused_and_both_named() -> None:
    app = Fairlane("postgresql://nowhere")

    @app.job("work")
    def first() -> None: ...

    @app.job("work", version="2")
    def second() -> None: ...

    with pytest.raises(TaskInvalid, match=r'two tasks are "work" version 1: .*first and .*third'):

        @app.job("work")
        def third() -> None: ...

    assert [found.function.__name__ for found in app.tasks.values()] == ["first", "second"]


def test_a_task_in_a_process_of_its_own_must_be_findable_there() -> None:
    app = Fairlane("postgresql://nowhere")

    @app.job("work", isolation="process")
    def work() -> None: ...

    with pytest.raises(TaskInvalid, match="needs a function at the top of its module"):
        app.check_tasks()


async def test_async_and_plain_functions_are_told_apart_and_both_can_be_called() -> None:
    async def waits(x: int) -> int:
        return x

    def works(x: int) -> int:
        return x

    assert (task(waits).is_async, task(works).is_async) == (True, False)
    assert await task(waits)(3) == task(works)(3) == 3


IN_ANY_PROCESS = """
import dataclasses, enum, msgspec
from fairlane import Fairlane, schemas
app = Fairlane("postgresql://nowhere")

class Color(enum.Enum):
    RED = "red"; BLUE = "blue"; GREEN = "green"

@dataclasses.dataclass(frozen=True)
class Pair:
    left: str
    right: frozenset[str]

class Inner(msgspec.Struct, frozen=True):
    names: frozenset[str]

@app.job("work")
def work(names: set[str], colors: set[Color], pairs: set[Pair], inner: list[Inner],
         mixed: set[str | int | None], loose: list[str],
         usual: frozenset[str] = frozenset("abcdefgh")) -> None: ...

payload = app.tasks["work", "1"].signature.payload({
    "names": set("qwertyuiop"),
    "colors": set(Color),
    "pairs": {Pair(each, frozenset("xyz" + each)) for each in "abc"},
    "inner": [Inner(frozenset("hello")), Inner(frozenset("world"))],
    "mixed": {"b", 2, None, "a", 1},
    "loose": set("asdfgh"),
})
print(schemas.inputs_hash("work", "1", payload), payload["names"], payload["inner"][0])
"""


def test_a_set_makes_the_same_payload_in_every_process() -> None:
    seen = {
        subprocess.run(
            [sys.executable, "-c", IN_ANY_PROCESS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }

    (only,) = seen
    assert str(sorted("qwertyuiop")) in only
    assert "{'names': ['e', 'h', 'l', 'o']}" in only


def test_equal_inputs_in_other_words_make_one_payload_where_the_types_are_known() -> None:
    def work(at: datetime, by: UUID, wait: timedelta, names: set[str]) -> None: ...

    signature = task(work).signature
    lower = UUID("00000000-0000-0000-0000-00000000000a")
    python = {
        "at": datetime(2024, 1, 2, tzinfo=UTC),
        "by": lower,
        "wait": timedelta(seconds=90),
        "names": {"b", "a"},
    }
    by_sql = {
        "at": "2024-01-02T00:00:00+00:00",
        "by": str(lower).upper(),
        "wait": "PT1M30S",
        "names": ["b", "a", "b"],
    }

    assert signature.payload(python) == signature.payload(by_sql)


@pytest.mark.parametrize("depth", [102, 500, 1200, 20_000])
def test_a_payload_too_deep_is_refused_and_nothing_else_happens(depth: int) -> None:
    def typed(data: dict[str, Any]) -> None: ...
    def untyped(data: Any) -> None: ...
    def free(**data: Any) -> None: ...

    value: Any = {}
    for _ in range(depth):
        value = {"a": value}

    for function in (typed, untyped, free):
        with pytest.raises(PayloadInvalid, match="nested more than 100 deep"):
            task(function).signature.payload({"data": value})
