"""What a text itself calls a secret: `password=...`, `"api_key": "..."`, `--token ...`.

Found from the sign between name and value, because signs are rarer than words: looking for all the
names in every text would cost ten times as much.
"""

import re
from collections.abc import Iterator

from fairlane.redact.marker import MARKER
from fairlane.redact.names import is_secret

SIGN = re.compile(r"[=:][=>]{0,2}[ \t]{0,8}")
OPTION = re.compile(r"--([A-Za-z0-9]*+(?:[-_][A-Za-z0-9]++)*+)[ \t]++(?=[^\s\"'\[-])")

# A quoted value goes up to the quote that closes it, which is escaped if the first one was.
QUOTED = re.compile(
    r"[bruBRU]{0,2}(?P<escape>\\{1,2})?(?P<quote>[\"'])"
    r"(?P<value>(?(escape)(?:(?!\\{0,2}(?P=quote))[^\r\n])*+"
    r"|(?:\\[^\r\n]|(?!(?P=quote))[^\\\r\n])*+))"
)
BARE = re.compile(r"[^\s\"'`,;&<>(){}\[\]|\\]++")
# The last letters of the names there are, and what may stand between a name and the sign. Most
# signs in a log line stand in a time or behind another word, and cost no more than this look.
MAY_END = frozenset("detnyslg]\"'\\ \t")
NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")  # read backwards

# What stands behind "token:" or "--token" in prose and code, and is no token.
NO_VALUES = """
none null nil undefined true false yes no str string int integer bytes bool optional any self
required missing expired invalid unknown empty wrong incorrect denied refused rejected failed
revoked valid unset set not must is was are has have too should cannot can may will and or of for
in the a an ok unexpected unauthorized forbidden mismatch changed updated deleted created to with
from on at by if when it option flag argument instead
"""
NO_VALUE = frozenset(NO_VALUES.split())
REFERENCE = re.compile(r"\$[A-Z_][A-Z0-9_]*|%[a-z]|\.{3}|//.*")


def hide(text: str) -> str:
    parts: list[str] = []
    shown = 0
    for start, end in _values(text):
        parts += (text[shown:start], MARKER)
        shown = end
    return "".join((*parts, text[shown:])) if parts else text


def _values(text: str) -> Iterator[tuple[int, int]]:
    """Where the values of secrets stand, in order."""
    at = 0
    while sign := SIGN.search(text, at):
        at = sign.end()
        name = _name_before(text, sign.start())
        if is_secret(name) and (span := _value(text, at, name, sign[0])):
            yield span
            at = span[1]


def hide_options(text: str) -> str:
    parts: list[str] = []
    shown = 0
    for option in OPTION.finditer(text):
        value = BARE.match(text, option.end())
        if value and is_secret(option[1]) and value[0].lower() not in NO_VALUE:
            parts += (text[shown : value.start()], MARKER)
            shown = value.end()
    return "".join((*parts, text[shown:])) if parts else text


def _name_before(text: str, end: int) -> str:
    """The name that ends here, perhaps in quotes or brackets: password, "password", ['password']"""
    if text[end - 1 : end].lower() not in MAY_END:
        return ""
    before = text[max(0, end - 96) : end].rstrip(" \t").rstrip("]\"'\\")
    found = NAME.match(before[::-1])
    return found[0][::-1] if found else ""


def _value(text: str, start: int, name: str, sign: str) -> tuple[int, int] | None:
    if quoted := QUOTED.match(text, start):
        return quoted.span("value") if quoted["value"] else None
    bare = BARE.match(text, start)
    if bare is None or not _is_value(bare, name, sign):
        return None
    return bare.span()


def _is_value(bare: "re.Match[str]", name: str, sign: str) -> bool:
    value = bare[0]
    plain = value.strip(".,:;!?").lower()
    if not plain or plain in NO_VALUE or REFERENCE.fullmatch(value):
        return False
    if name.lower().endswith("pwd") and value.startswith(("/", "~", ".")):
        return False  # the working directory
    if "=" in sign:
        return True
    # Behind a colon, a plain word may begin a sentence: "password: must be longer".
    if plain.isalpha():
        following = bare.string[bare.end() : bare.end() + 1]
        return not following or following in "\r\n,;}\"'"
    return len(plain) > 3 or not plain.isdigit()
