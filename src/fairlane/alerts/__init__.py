"""Alerts as the API and the command line show them; the rules are fairlane.evaluate_alerts."""

from collections.abc import Mapping
from typing import Any

from fairlane.errors import ValueRefused
from fairlane.executors.http.settings import HttpSettings

# With a state, those; without, whatever is open and told, and the newest of the past.
ALERTS = """
select * from fairlane.alerts
 where case when $1::text = 'open' then state not in ('pending', 'resolved')
            when $1 is not null then state = $1 else state <> 'pending' end
   and ($2::text is null or rule = $2)
   and ($3::uuid is null or (coalesce(fired_at, since), id) < (
         select coalesce(fired_at, since), id from fairlane.alert where id = $3))
 order by coalesce(fired_at, since) desc, id desc
 limit $4
"""
ALERT = "select * from fairlane.alerts where id = $1"
RULES = """
select name, description, threshold, unit, for_seconds, clear_seconds, cooldown_seconds,
       window_seconds, severity, channels, scope, is_enabled, updated_at
  from fairlane.alert_rule
 where $1::text is null or name = $1
 order by position
"""
CHANNELS = """
select name, kind, least_severity, settings, is_enabled, updated_at
  from fairlane.alert_channel
 where $1::text is null or name = $1
 order by name
"""
SILENCES = """
select id, rule, subject, until, reason, created_by, created_at
  from fairlane.silence
 where until > fairlane.clock() and ($1::uuid is null or id = $1)
 order by until, id
"""
TOLD = ("id", "channel", "event", "sent_at", "job_id", "error")


def check_channel(kind: str, settings: Mapping[str, Any]) -> None:
    """Refuse what could never be sent, before it is kept."""
    if kind == "webhook":
        HttpSettings.read(settings, {"type": "object"})
    elif kind == "mail":
        to = settings.get("to")
        if not isinstance(to, list) or not to or not all(_is_address(each) for each in to):
            raise ValueRefused('a mail channel has "to", a list of addresses like ops@example.com')
        if more := sorted(set(settings) - {"to"}):
            raise ValueRefused(f'a mail channel has "to" and no "{more[0]}"')


def _is_address(text: Any) -> bool:
    if not isinstance(text, str) or any(c.isspace() or c in ",;<>" for c in text):
        return False
    name, at, host = text.rpartition("@")
    return bool(name and at and host) and text.isprintable()
