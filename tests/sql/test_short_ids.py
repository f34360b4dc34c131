"""Short ids in SQL are those of the library, and a mistyped one is refused as such."""

from uuid import UUID, uuid4

import pytest

from fairlane.errors import IdInvalid, RequestInvalid
from fairlane.ids import SYMBOLS, parse_id, short_id, uuid7
from support.core import Core

EDGES = [UUID(int=0), UUID(int=2**128 - 1), UUID(int=36), UUID(int=37)]


async def test_sql_and_the_library_agree_on_every_id(core: Core) -> None:
    ids = EDGES + [uuid7() for _ in range(20)] + [uuid4() for _ in range(20)]
    for each in ids:
        short = await core.one("select fairlane.short_id($1)", each)
        assert short == short_id(each)
        for written in (short, short.lower(), f"{short[:9]}-{short[9:]}", str(each), each.hex):
            assert await core.one("select fairlane.parse_id($1)", written) == each
            assert parse_id(written) == each


async def test_any_one_wrong_character_is_noticed_and_told_alike(core: Core) -> None:
    short = short_id(uuid7())
    wrong = [
        short[:n] + SYMBOLS[(SYMBOLS.index(short[n]) + 1) % 32] + short[n + 1 :] for n in range(26)
    ]
    for given in [*wrong, short[:-1], short + "0", "*" + short[1:], "", "é" * 27, "x; drop"]:
        with pytest.raises(IdInvalid) as ours:
            parse_id(given)
        with pytest.raises(RequestInvalid) as theirs:
            await core.one("select fairlane.parse_id($1)", given)
        assert str(theirs.value) == str(ours.value)
