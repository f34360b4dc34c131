"""Sends the mail of an alert: SMTP, by whichever worker takes the job."""

import smtplib
import ssl
from email.message import EmailMessage
from typing import Any

from fairlane import config
from fairlane.app import Fairlane
from fairlane.config import Settings
from fairlane.context import JobContext
from fairlane.errors import FairlaneError

system = Fairlane()

PORTS = {"starttls": 587, "tls": 465, "none": 25}
PATIENCE = 20.0  # seconds for each step of the conversation


class MailNotSent(FairlaneError):
    """The mail was not taken; the job is tried again."""


@system.job("fairlane.mail", timeout=30)
def mail(ctx: JobContext, to: list[str], news: dict[str, Any]) -> dict[str, Any]:
    """Hand one message to the mail server."""
    settings = config.load()
    if settings.smtp_host is None:
        raise MailNotSent("FAIRLANE_SMTP_HOST is not set where this worker runs; set it there")
    try:
        with _connected(settings) as server:
            if settings.smtp_user is not None:
                server.login(settings.smtp_user, settings.smtp_password or "")
            refused = server.send_message(_message(settings, to, news), to_addrs=to)
    except (OSError, smtplib.SMTPException) as error:
        raise MailNotSent(f"{settings.smtp_host} did not take the mail: {error}") from None
    return {"to": [each for each in to if each not in refused], "refused": sorted(refused)}


def _connected(settings: Settings) -> smtplib.SMTP:
    host = settings.smtp_host or ""
    port = settings.smtp_port or PORTS[settings.smtp_security]
    if settings.smtp_security == "tls":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(host, port, timeout=PATIENCE, context=context)
    server = smtplib.SMTP(host, port, timeout=PATIENCE)
    if settings.smtp_security == "starttls":
        try:
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server


def _message(settings: Settings, to: list[str], news: dict[str, Any]) -> EmailMessage:
    message = EmailMessage()
    event = str(news["event"]).replace("_", " ")
    title = f"[Fairlane] {news['severity']} {event}: {news['rule']} {news['subject']}"
    message["Subject"] = " ".join(title.split())  # a header is one line
    message["From"] = settings.smtp_from
    message["To"] = ", ".join(to)
    # The same over all attempts: a mail that was taken twice is shown once.
    message["Message-ID"] = f"<{news['id']}@fairlane>"
    message["Auto-Submitted"] = "auto-generated"
    shown = ("event", "rule", "subject", "severity", "value", "threshold", "unit", "since", "at")
    lines = [str(news["summary"]), "", *(f"{name}: {news[name]}" for name in shown)]
    lines += ["", f"What to do: docs/operating/runbooks.md, {news['rule']}"]
    lines += ["See: fairlane alerts list"]
    message.set_content("\n".join(lines))
    return message
