"""A value stays within its argument, whatever it holds."""

import random
from typing import Any

import pytest

from fairlane.errors import DefinitionInvalid
from fairlane.executors.command.argv import LONGEST, ArgumentsRefused
from fairlane.executors.command.settings import CommandSettings
from support.runs import Run, calling

OPEN = {"type": "object"}


def settings(*argv: Any, schema: Any = None, **others: Any) -> CommandSettings:
    return CommandSettings.read({"argv": ["tool", *argv], **others}, schema or OPEN)


def built(*argv: Any, **payload: Any) -> list[str]:
    values = {"payload": payload, "tenant": {"id": "t-1", "slug": "acme"}, "definition": "sync"}
    return settings(*argv).argv.build(values)[1:]


def faults(*argv: Any, schema: Any = None, **others: Any) -> dict[str, str]:
    with pytest.raises(DefinitionInvalid) as refused:
        settings(*argv, schema=schema, **others)
    return {fault.pointer: fault.message for fault in refused.value.faults}


# One placeholder, one argument ---------------------------------------------------------------


def test_the_example_of_the_contract() -> None:
    argv = ["sync-dropbox", "--tenant-id", "{tenant.id}", "--path", "{payload.path_prefix}"]
    schema = {
        "type": "object",
        "properties": {"path_prefix": {"type": "string", "default": "/"}},
        "additionalProperties": False,
    }
    read = settings(*argv, schema=schema, env={"MODE": "nightly"}, retry_codes=[75])
    values = {"tenant": {"id": "t-1"}, "payload": {"path_prefix": "/a b; rm -rf *"}}
    assert read.argv.build(values) == [
        "tool",
        "sync-dropbox",
        "--tenant-id",
        "t-1",
        "--path",
        "/a b; rm -rf *",
    ]


def test_each_part_becomes_as_many_arguments_as_its_form_says() -> None:
    parts = (
        "plain",
        3,
        "--path={payload.p}",
        {"value": "{payload.n}", "allow_leading": ["-"]},
        {"optional": ["--there", "{payload.p}"]},
        {"optional": ["--absent", "{payload.p}", "{payload.nowhere}"]},
        {"optional": "{payload.null}"},
        {"when": "{payload.yes}", "argv": ["--yes", "{payload.p}"]},
        {"when": "{payload.no}", "argv": ["--no"]},
        {"when": "{payload.nowhere}", "argv": ["--nowhere"]},
        {"each": "{payload.tags}", "argv": ["--tag", "{item}={definition}"]},
        {"each": "{payload.tags}"},
        {"each": "{payload.none}"},
        {"each": "{payload.nowhere}"},
        "{{braces}}",
    )
    found = built(
        *parts, p="a b", n=-5, null=None, yes=True, no=False, tags=["x y", 1, True], none=[]
    )
    assert found == [
        *("plain", "3", "--path=a b", "-5", "--there", "a b", "--yes", "a b"),
        *("--tag", "x y=sync", "--tag", "1=sync", "--tag", "true=sync"),
        *("x y", "1", "true", "{braces}"),
    ]


@pytest.mark.parametrize(
    ("part", "value", "why"),
    [
        ("{payload.x}", "-rf", 'may not begin an argument with "-"'),
        ("{payload.x}", "--", 'may not begin an argument with "-"'),
        ("{payload.x}", -5, 'may not begin an argument with "-"'),
        ("{payload.x}", "@/etc/passwd", 'may not begin with "@"'),
        ("--data={payload.x}", "@/etc/passwd", 'may not begin with "@"'),
        ("-d{payload.x}", "@/etc/passwd", 'may not begin with "@"'),
        ("key={payload.x}", "@/etc/passwd", 'may not begin with "@"'),
        ("{payload.x}{payload.y}", "", 'may not begin an argument with "-"'),
        ({"value": "{payload.x}", "allow_leading": ["-"]}, "@f", 'may not begin with "@"'),
        ({"value": "{payload.x}", "allow_leading": ["@"]}, "-f", "may not begin an argument"),
        ({"optional": ["--x", "{payload.x}"]}, "-f", "may not begin an argument"),
        ("{payload.x}", "a\x00b", "NUL"),
        ("{payload.x}", "a\ud800b", "half a character"),
        ("{payload.x}", "x" * (LONGEST + 1), "the limit is 65536"),
        ("{payload.x}", "é" * (LONGEST // 2 + 1), "the limit is 65536"),
        ("{payload.x}", None, "is null"),
        ("{payload.x}", {}, "is an object"),
        ("{payload.x}", ["a"], "is an array"),
        ({"when": "{payload.x}", "argv": ["-v"]}, "yes", "is not true or false"),
        ({"each": "{payload.x}"}, "abc", "is not an array"),
    ],
)
def test_a_value_that_may_not_be_is_refused_by_its_pointer(part: Any, value: Any, why: str) -> None:
    with pytest.raises(ArgumentsRefused) as refused:
        built(part, x=value, y="-rf")
    (fault,) = refused.value.faults
    assert fault.pointer == "/x"
    assert why in fault.message
    assert "payload.x" in fault.message


@pytest.mark.parametrize(
    ("part", "value", "becomes"),
    [
        ("--n={payload.x}", -5, "--n=-5"),  # cannot be taken for an option
        ("user@{payload.x}", "@host", "user@@host"),
        ({"value": "{payload.x}", "allow_leading": ["-"]}, "-1", "-1"),
        ({"value": "{payload.x}", "allow_leading": ["-", "@"]}, "@f", "@f"),
        ({"value": "--data={payload.x}", "allow_leading": ["@"]}, "@f", "--data=@f"),
        ("@{payload.x}", "f", "@f"),  # the template's own
        ("{payload.x}", "", ""),
        ("{payload.x}", "–x", "–x"),  # a dash, but no option's
        ("{payload.x}", " -x", " -x"),
    ],
)
def test_what_the_template_allows_passes(part: Any, value: Any, becomes: str) -> None:
    assert built(part, x=value) == [becomes]


def test_every_fault_of_a_payload_is_told_at_once() -> None:
    with pytest.raises(ArgumentsRefused) as refused:
        built("{payload.a}", "{payload.b}", {"each": "{payload.c}"}, a="-a", c=["ok", "@c"])
    assert [fault.pointer for fault in refused.value.faults] == ["/a", "/b", "/c/1"]


def test_a_payload_can_be_tried_before_there_is_a_job() -> None:
    read = settings("{tenant.slug}", "{job.id}", "{payload.x}")
    assert read.faults({"x": "fine"}) == []
    assert [fault.pointer for fault in read.faults({"x": "-rf"})] == ["/x"]


def test_arguments_are_bounded_in_number_and_in_all() -> None:
    with pytest.raises(ArgumentsRefused, match="5001 arguments; the limit is 4096"):
        built({"each": "{payload.x}"}, x=["a"] * 5_000)
    with pytest.raises(ArgumentsRefused, match="the limit is 524288"):
        built({"each": "{payload.x}"}, x=["a" * 60_000] * 10)


# Refused when it is defined ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "must be a list"),
        ("tool --x", "must be a list"),
        ([""], "name of a program"),
        (["-x"], "name of a program"),
        (["./tool"], "absolute path"),
        (["bin/tool"], "absolute path"),
        (["{payload.x}"], "with no placeholder"),
        (["too{definition}"], "with no placeholder"),
        (["tool\x00"], "NUL"),
        (["to\ud800ol"], "half a character"),
        ([["tool"]], "must be a text"),
        (["x"] * 300, "the limit is 256"),
    ],
)
def test_a_program_is_named_outright(argv: Any, says: str) -> None:
    with pytest.raises(DefinitionInvalid) as refused:
        CommandSettings.read({"argv": argv}, OPEN)
    (fault,) = refused.value.faults
    assert fault.pointer in ("/command/argv", "/command/argv/0")
    assert says in fault.message


def test_every_fault_of_the_settings_is_told_at_once_with_its_pointer() -> None:
    found = faults(
        "{nope}",
        "{secret.key}",
        "--{payload.x}",
        {"value": "{payload.x}", "allow_leading": "yes"},
        {"optional": ["--plain"]},
        {"each": "all {payload.x}", "argv": ["--tag"]},
        {"optional": [], "also": 1},
        {"when": "{payload.x}", "argv": ["{item}"]},
        True,
        "{tenant.name}",
        env={"LD_PRELOAD": "x", "a-b": "", "PATH": "{payload.x}", "FAIRLANE_X": "", "OK": []},
        inherit=["FAIRLANE_DATABASE_URL", "PGPASSWORD", "DATABASE_URL", "PYTHONPATH", "AWS_REGION"],
        cwd="relative",
        stdin="yes",
        limits={"cpu_seconds": 0, "wishes": 3, "output_bytes": None, "memory_mb": True},
        success_codes=[],
        retry_codes=[0, 75],
        final_codes=[256],
        shell=True,
    )
    assert set(found) == {
        "/command/argv/1",
        "/command/argv/2",
        "/command/argv/3",
        "/command/argv/4/allow_leading",
        "/command/argv/5/optional",
        "/command/argv/6/each",
        "/command/argv/6/argv",
        "/command/argv/7",
        "/command/argv/8/argv/0",
        "/command/argv/9",
        "/command/argv/10",
        "/command/env/LD_PRELOAD",
        "/command/env/a-b",
        "/command/env/PATH",
        "/command/env/FAIRLANE_X",
        "/command/env/OK",
        "/command/inherit/0",
        "/command/inherit/1",
        "/command/inherit/2",
        "/command/inherit/3",
        "/command/cwd",
        "/command/stdin",
        "/command/limits/cpu_seconds",
        "/command/limits/wishes",
        "/command/limits/output_bytes",
        "/command/limits/memory_mb",
        "/command/success_codes",
        "/command/final_codes",
        "/command/shell",
    }
    assert "a secret may not stand in an argument" in found["/command/argv/2"]
    assert "would choose the option" in found["/command/argv/3"]


@pytest.mark.parametrize(
    "argv",
    [
        ["sh", "-c", "echo {payload.x}"],
        ["/bin/bash", "-lc", "echo {payload.x}"],
        ["bash", "-c", "-x", "echo {payload.x}"],
        ["env", "A=1", "dash", "-c", "{payload.x}"],
        ["python3.12", "-c", "print({payload.x})"],
        ["perl", "-e{payload.x}"],
        ["node", "--eval", {"value": "{payload.x}"}],
        ["sh", "-c", {"optional": ["{payload.x}"]}],
        ["sh", "-c", {"each": "{payload.x}", "argv": ["{item}"]}],
        ["bash", "-cx", "echo {payload.x}"],
        ["bash", "-exc", "echo {payload.x}"],
        ["env", "-S", "tool {payload.x}"],
        ["env", "-iS{payload.x}"],
        ["env", "--split-string=tool {payload.x}"],
        ["script", "-qc", "tool {payload.x}", "/dev/null"],
        ["flock", "/tmp/lock", "-c", "tool {payload.x}"],
        ["perl", "-0777ne", "print {payload.x}"],
        ["perl", "-i.bak", "-pe", "s/a/{payload.x}/"],
        ["php", "-r", "{payload.x}"],
        ["xargs", "-0", "-n", "1", "sh", "-c", "echo {payload.x}"],
        ["sudo", "-u", "nobody", "su", "--command={payload.x}"],
    ],
)
def test_no_value_may_stand_in_code_that_an_interpreter_is_given(argv: list[Any]) -> None:
    with pytest.raises(DefinitionInvalid, match="a value may not stand in code"):
        CommandSettings.read({"argv": argv}, OPEN)


@pytest.mark.parametrize(
    "argv",
    [
        ["env", "{payload.x}"],
        ["env", "-i", "-u", "A", "B=1", "/usr/bin/{payload.x}"],
        ["nice", "-n", "5", "{payload.x}"],
        ["nice", "-5", "{payload.x}"],
        ["timeout", "--signal=KILL", "5", "{payload.x}"],
        ["timeout", "-s", "KILL", "5", "nohup", "setsid", "{payload.x}"],
        ["xargs", "-n", "1", {"value": "{payload.x}"}],
        ["busybox", "{payload.x}"],
        ["sudo", "-u", "{payload.user}", {"optional": ["{payload.x}"]}],
    ],
)
def test_no_value_may_choose_the_program_that_another_starts(argv: list[Any]) -> None:
    with pytest.raises(DefinitionInvalid) as refused:
        CommandSettings.read({"argv": argv}, OPEN)
    (fault,) = refused.value.faults
    assert fault.pointer.startswith(f"/command/argv/{len(argv) - 1}")
    assert "the program is named outright" in fault.message


@pytest.mark.parametrize(
    "argv",
    [
        ["sh", "-c", 'tar cf - "$1" | gzip', "sh", "{payload.dir}"],
        ["env", "A={payload.x}", "tool", "-S", "{payload.x}"],
        ["timeout", "{payload.seconds}", "tool", "{payload.x}"],
        ["nice", "-n", "{payload.n}", "tool", "{payload.x}"],
        ["xargs", "-a", "{payload.file}", "tool", "-c", "{payload.x}"],
        ["perl", "-Mbase", "script.pl", "{payload.x}"],
        ["tool", "-c", "{payload.x}"],
    ],
)
def test_a_value_that_is_an_argument_of_its_own_is_fine(argv: list[Any]) -> None:
    CommandSettings.read({"argv": argv}, OPEN)


def test_a_brace_that_names_no_value_is_told_once_and_with_what_to_write() -> None:
    """What stood behind it was taken for the code, and refused as well."""
    with pytest.raises(DefinitionInvalid) as refused:
        CommandSettings.read(
            {
                "argv": ["python3", "-c", "print({'x': 1})", "{tenant.slug}"],
                "env": {"X": "{'x': 1}"},
            },
            OPEN,
        )
    assert [fault.pointer for fault in refused.value.faults] == [
        "/command/argv/2",
        "/command/env/X",
    ]
    assert all('write "{{" for a plain brace' in fault.message for fault in refused.value.faults)
    with pytest.raises(DefinitionInvalid, match=r'a lone "{"; write "{{" for a plain brace$'):
        CommandSettings.read({"argv": ["tool", "{x"]}, OPEN)


SCHEMA = {
    "type": "object",
    "properties": {
        "must": {"type": "string"},
        "given": {"type": "string", "default": "x"},
        "may": {"type": "string"},
        "nullable": {"type": ["string", "null"]},
        "list": {"type": "array", "items": {"type": "string"}},
        "lists": {"type": "array", "items": {"type": "array"}},
        "object": {"$ref": "#/$defs/inner"},
        "flag": {"type": "boolean"},
        "anything": True,
    },
    "required": ["must", "nullable", "object", "anything"],
    "additionalProperties": False,
    "$defs": {
        "inner": {
            "type": "object",
            "properties": {"deep": {"type": "integer"}},
            "required": ["deep"],
            "additionalProperties": False,
        }
    },
}


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("{payload.must}", None),
        ("{payload.given}", None),
        ("{payload.anything.below}", None),
        ("{payload.object.deep}", None),
        ("{payload.may}", None),  # a payload without it is refused, not the definition
        ("{payload.nullable}", None),
        ({"optional": ["{payload.may}"]}, None),
        ({"optional": ["{payload.nullable}"]}, None),
        ({"each": "{payload.list}"}, None),
        ({"when": "{payload.flag}", "argv": ["-v"]}, None),
        ("{payload.typo}", "is not in arg_schema"),
        ({"optional": ["{payload.typo}"]}, "is not in arg_schema"),
        ("{payload.object.typo}", "is not in arg_schema"),
        ({"each": "{payload.typo}"}, "is not in arg_schema"),
        ({"when": "{payload.typo}", "argv": ["-v"]}, "is not in arg_schema"),
        ("{payload.list}", "not a single value"),
        ("{payload.object}", "not a single value"),
        ({"each": "{payload.must}"}, "not an array"),
        ({"each": "{payload.lists}"}, "not single values"),
        ({"when": "{payload.must}", "argv": ["-v"]}, "not a boolean"),
    ],
)
def test_names_are_held_against_the_payload_schema(part: Any, says: str | None) -> None:
    if says is None:
        settings(part, schema=SCHEMA)
    else:
        (message,) = faults(part, schema=SCHEMA).values()
        assert says in message


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": {"other": {}}},
        True,
        {"type": "object"},
        {"$ref": "https://example.com/x"},
        {"type": "object", "properties": {}, "allOf": [{"required": ["x"]}]},
        {"type": "object", "patternProperties": {"x": {}}},
        {"$ref": "#/$defs/round", "$defs": {"round": {"$ref": "#/$defs/round"}}},
    ],
)
def test_what_a_schema_leaves_open_is_not_held_against_a_template(schema: Any) -> None:
    settings("{payload.x}", schema=schema)


# Generated -----------------------------------------------------------------------------------

ATOMS = (
    *("a", "Z", "0", " ", "\t", "\n", "\r", "-", "--", "@", "'", '"', "`", "\\", "$", "$(id)"),
    *("${HOME}", ";", "&&", "|", ">", "<", "*", "?", "~", "!", "#", "%s", "=", ",", "/", "../"),
    *("{", "}", "{{", "}}", "{payload.x}", "{secret.k}", "{item}", "é", "漢", "\u202e", "🚚"),
    *("\x1b[0m", "\x7f", "\u00a0", "\ufeff", "--", "-rf", "@file", "\x00", "\ud800"),
)


def values(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(ATOMS, k=rng.randrange(0, 9))) for _ in range(count)]


def may_be(value: str) -> bool:
    """By the rules as the docs tell them."""
    return not value.startswith(("-", "@")) and "\x00" not in value and "\ud800" not in value


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_hundred_thousand_values_each_reach_a_real_process_as_one_argument() -> None:
    given = values(1, 100_000)
    read = settings("--x", "{payload.x}", "--y=é{payload.x}", "end")
    passed = []
    for value in given:
        try:
            argv = read.argv.build({"payload": {"x": value}})
        except ArgumentsRefused:
            assert not may_be(value), repr(value)
        else:
            assert argv == ["tool", "--x", value, "--y=é" + value, "end"]
            passed.append(value)
    assert 60_000 < len(passed) < 95_000

    for start in range(0, len(passed), 4_000):
        batch = passed[start : start + 4_000]
        run = Run(calling("argv", {"each": "{payload.values}"}), {"values": batch})
        assert await run.result() == batch


def plain(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")


def an_argument(rng: random.Random, texts: dict[str, str]) -> tuple[str, list[str] | None]:
    """An argument's template, and what it must become by a reading of its own; None: refused."""
    before = rng.choice(("", "", "x", "--p=", "{{", "é ", "a@", "}}-"))
    after = rng.choice(("", "", "!", "}}", "-", "@"))
    name = rng.choice(list(texts))
    behind = texts[name] + plain(after)
    refused = ["-", "@"] if before == "" else ["@"] if before == "--p=" else []
    becomes = None if behind[:1] in refused else [plain(before) + behind]
    return f"{before}{{payload.{name}}}{after}", becomes


def a_part(rng: random.Random, texts: dict[str, str]) -> tuple[Any, list[str] | None]:
    template, becomes = an_argument(rng, texts)
    match rng.randrange(5):
        case 0:
            flag = rng.choice(("--flag", "-f", "$(id)", "{{}}", "@x", " "))
            return {"optional": [flag, template]}, becomes and [plain(flag), *becomes]
        case 1:
            return {"optional": [template, "{payload.nowhere}"]}, []
        case 2:
            items = ["one", "{payload.a}", "-x"]
            argv = ["--all", "-i={item}", template]
            each = becomes and [word for i in items for word in ("--all", f"-i={i}", *becomes)]
            return {"each": "{payload.list}", "argv": argv}, each
        case _:
            return template, becomes


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_hundred_thousand_templates_each_make_just_their_own_arguments() -> None:
    rng = random.Random(2)
    pool = [value for value in values(3, 20_000) if "\x00" not in value and "\ud800" not in value]
    passed = refused = 0
    for number in range(400):
        texts = {f"n{name}": rng.choice(pool) for name in range(50)}
        values_of_all = {"payload": {**texts, "list": ["one", "{payload.a}", "-x"]}}
        parts = [a_part(rng, texts) for _ in range(250)]
        good = [(part, becomes) for part, becomes in parts if becomes is not None]
        expected = [word for _, becomes in good for word in becomes]
        read = settings(*(part for part, _ in good))
        assert read.argv.build(values_of_all) == ["tool", *expected]
        passed += len(good)

        bad = [part for part, becomes in parts if becomes is None]
        for part in bad:
            with pytest.raises(ArgumentsRefused):
                settings(part).argv.build(values_of_all)
        refused += len(bad)

        if number % 40 == 0:  # and as a real process sees them
            run = Run(calling("argv", *(part for part, _ in good)), values_of_all["payload"])
            assert await run.result() == expected
    assert passed + refused == 100_000
    assert refused > 3_000
