"""Secrets that give themselves away by how they look, in any text.

A small, precise set: what the issuers of tokens made recognisable, and what is called a secret in
the text itself. No pattern asks for anything after a part that may be long, so each takes time in
proportion to the text, whatever the text is. A shape whose hints are not in the text costs nothing.
"""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from fairlane.redact import assignments
from fairlane.redact.marker import MARKER

Match = re.Match[str]


@dataclass(frozen=True)
class Shape:
    """One kind of secret. Its pattern has the secret in the group `secret`, or is the secret."""

    name: str
    hints: tuple[str, ...]  # in lower case; one of them is in every text that has the secret
    pattern: str
    is_secret: Callable[[Match], bool] = lambda _: True

    @cached_property
    def finder(self) -> "re.Pattern[str]":
        return re.compile(self.pattern)

    def hide(self, text: str) -> str:
        return self.finder.sub(self._without, text)

    def _without(self, match: Match) -> str:
        if not self.is_secret(match):
            return match[0]
        start, end = match.span("secret" if "secret" in match.groupdict() else 0)
        if start < 0:  # the group is not in the part of the pattern that fits
            return MARKER
        return match[0][: start - match.start()] + MARKER + match[0][end - match.start() :]


# A word alone is a secret only if it is longer than this.
SHORTEST = 15
SIGNS = frozenset("=: ,")


def hide(text: str) -> str:
    """The text without what looks like a secret."""
    if len(text) < SHORTEST and not SIGNS.intersection(text):
        return text
    lowered = text.lower()
    for shape in SHAPES:
        for hint in shape.hints:
            if hint in lowered:
                text = shape.hide(text)
                break
    if END_OF_KEY in text:
        text = _hide_end_of_key(text)
    if "--" in text:
        text = assignments.hide_options(text)
    return assignments.hide(text)


def _is_password(match: Match) -> bool:
    return re.match(r"\d{1,5}[?#]", match["secret"]) is None  # but a port


def _is_jwt(match: Match) -> bool:
    header, *rest = match[0].split(".")
    return len(rest) >= 2 and len(header) >= 10 and len(rest[0]) >= 10


def _is_bearer(match: Match) -> bool:
    secret = match["secret"]
    return len(secret) >= 16 or (len(secret) >= 8 and _has_digit(secret))


def _is_basic(match: Match) -> bool:
    try:
        decoded = b64decode(match["secret"] + "==").decode()
    except (Error, ValueError):
        return False
    return ":" in decoded and decoded.isprintable()


def _is_header(match: Match) -> bool:
    secret = match["secret"]
    return bool(match["scheme"] or match["long"]) or (len(secret) >= 8 and _has_digit(secret))


def _is_random(match: Match) -> bool:
    """A name in a program has words, not digits or capitals here and there."""
    return _has_digit(match[0]) or match[0].lower() != match[0]


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


# What is left of a private key whose beginning was cut off, as in the tail of an output.
END_OF_KEY = "PRIVATE KEY-----"
END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----")
IN_KEY = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n\\"


def _hide_end_of_key(text: str) -> str:
    parts: list[str] = []
    shown = 0
    for end in END.finditer(text):
        parts += (text[shown : end.start()].rstrip(IN_KEY), MARKER)
        shown = end.end()
    return "".join((*parts, text[shown:]))


QUOTE = r"""\\{0,2}["']"""
SHAPES = (
    Shape(
        "a private key",
        ("private key",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"[^-]*+(?:-(?!----)[^-]*+)*+(?:-----END [A-Z0-9 ]{0,60}-----)?",
    ),
    Shape(
        "the password in a URL",
        ("://",),
        r"://[^\s/:@\"'<>]{0,128}+:(?P<secret>[^\s/\"'<>]{1,256})@",
        _is_password,
    ),
    Shape(
        "an Authorization header",
        ("authorization",),
        rf"(?i)authorization(?:{QUOTE})?[ \t]{{0,8}}[:=,][ \t]{{0,8}}(?:b?{QUOTE})?"
        r"(?:(?P<scheme>basic|bearer|token|negotiate|ntlm|apikey)[ \t]++"
        r"|(?P<long>digest|hawk|signature|aws4-hmac-sha256)[ \t]++)?"
        r"(?P<secret>(?(long)[^\r\n]++|[^\s\"',;\\\[\]]++))",
        _is_header,
    ),
    Shape(
        "a bearer token",
        ("bearer",),
        r"(?i)\bbearer[ \t]{1,8}(?P<secret>[A-Za-z0-9._~+/=-]++)",
        _is_bearer,
    ),
    Shape(
        "a user and password for Basic",
        ("basic",),
        r"(?i)\bbasic[ \t]{1,8}(?P<secret>[A-Za-z0-9+/]++={0,2})",
        _is_basic,
    ),
    Shape(
        "cookies",
        ("cookie",),
        rf"(?i)cookie(?:{QUOTE})?[ \t]{{0,8}}[:,][ \t]{{0,8}}(?:{QUOTE})?"
        r"(?P<secret>[^\s=;,\"'\\]{1,128}+=[^\r\n\"'\\]*+)",
    ),
    Shape(
        "a JSON Web Token",
        ("eyj",),
        r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]*+)*+",
        _is_jwt,
    ),
    Shape(
        "an AWS access key",
        ("akia", "asia", "abia", "acca"),
        r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    Shape(
        "a GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})",
    ),
    Shape(
        "a GitLab token",
        ("gl",),
        r"gl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|agent|soat|ffct)-"
        r"[A-Za-z0-9_=-]{20,300}(?:\.[A-Za-z0-9_-]{2,100}){0,2}",
    ),
    Shape(
        "a Slack token",
        ("xox", "xapp-", "hooks.slack.com/"),
        r"(?:xox[a-z](?:\.xox[a-z])?-|xapp-)[A-Za-z0-9-]{10,255}"
        r"|hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/]{20,255})",
    ),
    Shape(
        "a Stripe key",
        ("sk_", "rk_", "whsec_"),
        r"(?:[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,255}|whsec_[A-Za-z0-9+/=]{16,255})",
    ),
    Shape(
        "a Google key",
        ("aiza", "ya29.", "gocspx-"),
        r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,2048}|GOCSPX-[A-Za-z0-9_-]{20,255}",
    ),
    Shape("an npm token", ("npm_",), r"npm_[A-Za-z0-9]{36,255}"),
    Shape("a PyPI token", ("pypi-ag",), r"pypi-Ag[A-Za-z0-9_-]{40,2048}"),
    Shape(
        "an OpenAI or Anthropic key",
        ("sk-",),
        r"(?<![A-Za-z0-9])sk-(?:(?:ant|proj|svcacct|admin)-[A-Za-z0-9_-]{20,255}|[A-Za-z0-9]{32,255})",
    ),
    Shape(
        "a Fairlane token",
        ("fl_",),
        r"(?<![A-Za-z0-9])fl_[A-Za-z0-9_-]{20,255}",
        _is_random,
    ),
)
