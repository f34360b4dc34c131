"""Jinja2, with everything escaped, and the words that templates use."""

import json
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from jinja2.exceptions import TemplateNotFound
from markupsafe import Markup

from fairlane.core import json as ours
from fairlane.web import charts, words
from fairlane.web.forgery import FIELD

if TYPE_CHECKING:
    from fairlane.web.visit import Visit


class Templates:
    def __init__(self, static: str) -> None:
        self._static = static
        self._env = Environment(
            loader=PackageLoader("fairlane.web"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._env.globals |= {
            "glyph": words.glyph,
            "pill": words.pill,
            "state_of": words.state_of,
            "STATES": words.STATES,
            "plural": words.plural,
            "in_zone": words.in_zone,
            "charts": charts,
            "min": min,
            "max": max,
        }
        self._env.filters |= {
            "number": words.number,
            "percent": words.percent,
            "duration": words.duration,
            "short": words.short,
            "pretty": pretty,
            "compact": ours.dumps,
        }

    def has(self, name: str) -> bool:
        try:
            self._env.get_template(name)
        except TemplateNotFound:
            return False
        return True

    def render(self, name: str, visit: "Visit", context: dict[str, Any]) -> str:
        return self._env.get_template(name).render(**self._of(visit), **context)

    def _of(self, visit: "Visit") -> dict[str, Any]:
        """What depends on who reads, and where."""

        def static(file: str) -> str:
            return visit.u("static", self._static, file)

        def when(moment: Any, style: str = "ago") -> Markup:
            return words.time_tag(moment, style, visit.prefs.tz, visit.now)

        def took(start: Any, end: Any = None) -> str | Markup:
            """How long; what has no end yet goes on, and the browser counts."""
            if start is not None and end is None:
                return words.time_tag(start, "for", visit.prefs.tz, visit.now)
            return words.duration(words.between(start, end, visit.now))

        def live(*topics: str) -> Markup:
            """The attribute of a region that is fetched anew when one of its topics is dirty."""
            return Markup('data-live="{}"').format(" ".join(topics))

        token = Markup('<input type="hidden" name="{}" value="{}">')
        return {
            "static": static,
            "when": when,
            "took": took,
            "live": live,
            "now": visit.now,
            "prefs": visit.prefs,
            "tenant": visit.tenant,
            "may": visit.may,
            "form_token": lambda: token.format(FIELD, visit.form_token),
        }


def pretty(value: Any) -> str:
    """JSON for people."""
    return json.dumps(json.loads(ours.dumps(value)), indent=2, ensure_ascii=False)
