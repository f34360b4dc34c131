"""Long texts cut to measure without leaving half a secret: nobody could recognise it any more.

So a text is scrubbed first and cut then. Where it is too long to be scrubbed whole, or has lost an
end before it came here, what stands at that end is left out besides: it may be half a secret.
"""

from collections.abc import Callable

from fairlane.redact import MARKER, speaking

MARGIN = 8_192  # characters: longer than any secret that should be recognised

Scrub = Callable[[str], str]


def beginning(text: str, most: int, scrub: Scrub | None = None) -> str:
    """The first characters of a text, without the secrets of the job that speaks here."""
    scrub = scrub or speaking().text
    part = text[: most + MARGIN]
    shown = scrub(part)
    return (shown if len(part) == len(text) else without_end(shown))[:most]


def ending(text: str, most: int, scrub: Scrub | None = None) -> str:
    """The last characters of a text, without the secrets of the job that speaks here."""
    scrub = scrub or speaking().text
    part = text[-most - MARGIN :]
    shown = scrub(part)
    shown = shown if len(part) == len(text) else without_start(shown)
    return shown[-most:] if most else ""


def without_end(scrubbed: str) -> str:
    """Up to where the last secret was found, but no more than MARGIN is left out."""
    found = scrubbed.rfind(MARKER)
    return scrubbed[: max(len(scrubbed) - MARGIN, found + len(MARKER) if found >= 0 else 0)]


def without_start(scrubbed: str, margin: int = MARGIN) -> str:
    found = scrubbed.find(MARKER)
    return scrubbed[margin if found < 0 else min(margin, found) :]
