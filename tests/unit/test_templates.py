"""A template names values and does nothing else."""

import random
from typing import Any

import pytest

from fairlane.executors.template import Template, TemplateInvalid, ValueMissing
from fairlane.executors.values import ROOTS, ROOTS_AND_SECRETS, misnamed

VALUES: dict[str, Any] = {
    "payload": {"a": "A", "b": {"c": "{payload.a}"}, "n": -5, "f": 1.5, "t": True, "none": None},
    "definition": "sync",
    "item": "}}",
}


def rendered(text: str, **how: Any) -> str:
    return Template(text, ROOTS | {"item"}).render(VALUES, **how)


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("", ""),
        ("plain", "plain"),
        ("{payload.a}", "A"),
        ("--x={payload.a}!", "--x=A!"),
        ("{payload.a}{payload.a}", "AA"),
        ("{{payload.a}}", "{payload.a}"),
        ("{{{payload.a}}}", "{A}"),
        ("}}{{", "}{"),
        ("{payload.b.c}", "{payload.a}"),  # a value is never read as a template
        ("{item}", "}}"),
        ("{payload.n} {payload.f} {payload.t}", "-5 1.5 true"),
        ("{definition}", "sync"),
    ],
)
def test_names_give_way_to_values(text: str, becomes: str) -> None:
    assert rendered(text) == becomes


@pytest.mark.parametrize(
    "text",
    [
        *("{", "}", "{}", "{ payload.a }", "{payload.}", "{.a}", "{payload..a}", "{os.environ}"),
        *("{0}", "{payload.a!r}", "{payload.a:>9}", "{payload[a]}", "{payload.a", "{{payload.a}"),
        *("{é}", "{secret.x}", "{payload.a\n}", "{payload.a}\x00}"),
    ],
)
def test_what_is_no_template_is_refused(text: str) -> None:
    with pytest.raises(TemplateInvalid):
        Template(text, ROOTS)


@pytest.mark.parametrize("text", ["{payload.x}", "{payload.a.b}", "{payload.b}", "{payload.none}"])
def test_a_value_that_is_not_there_or_not_single_is_told_by_name(text: str) -> None:
    with pytest.raises(ValueMissing, match=text.strip("{}")):
        rendered(text)


def test_each_value_goes_through_the_encoding_and_plain_text_does_not() -> None:
    assert rendered("/{payload.a}/", encode=lambda value: f"<{value}>") == "/<A>/"


def test_secrets_are_asked_for_by_their_whole_name() -> None:
    template = Template("Bearer {secret.stripe.live}", ROOTS_AND_SECRETS)
    assert template.render({}, secret=lambda name: f"[{name}]") == "Bearer [stripe.live]"


@pytest.mark.parametrize(
    ("name", "good"),
    [
        ("tenant.id", True),
        ("tenant.slug", True),
        ("tenant", False),
        ("tenant.name", False),
        ("tenant.id.x", False),
        ("job.id", True),
        ("attempt.number", True),
        ("definition", True),
        ("definition.x", False),
        ("payload", False),
        ("payload.a.b", True),
    ],
)
def test_a_name_that_can_never_stand_for_a_value_is_told(name: str, good: bool) -> None:
    assert (misnamed(tuple(name.split("."))) is None) == good


def test_a_hundred_thousand_generated_texts_are_read_by_the_letter() -> None:
    """Against a reader that goes letter by letter, and knows nothing of patterns."""
    rng = random.Random(4)
    pieces = ["{", "}", "{{", "}}", "payload", ".", "a", "b", "{payload.a}", "{payload.b.c}", "-"]
    pieces += ["@", " ", "\n", "é", "{item}", "{tenant.id}", "$(x)", "'", '"', "\\"]
    valid = 0
    for _ in range(100_000):
        text = "".join(rng.choices(pieces, k=rng.randrange(1, 8)))
        expected = by_letter(text)
        try:
            found = Template(text, frozenset({"payload", "item"})).render(VALUES)
        except (TemplateInvalid, ValueMissing):
            assert expected is None, text
        else:
            assert found == expected, text
            valid += 1
    assert 10_000 < valid < 90_000


KNOWN = {"payload.a": "A", "payload.b.c": "{payload.a}", "item": "}}"}


def by_letter(text: str) -> str | None:
    """What a text becomes; None where it is none, or names what is not there."""
    out, rest = "", text
    while rest:
        if rest.startswith(("{{", "}}")):
            out, rest = out + rest[0], rest[2:]
        elif rest[0] == "{":
            name, closed, rest = rest[1:].partition("}")
            if not closed or name not in KNOWN:
                return None
            out += KNOWN[name]
        elif rest[0] == "}":
            return None
        else:
            out, rest = out + rest[0], rest[1:]
    return out
