"""A small application to enqueue from."""

from typing import Any

from fairlane import Fairlane, Task


def shop(url: str) -> Fairlane:
    """An application with one task, `invoices.send`."""
    app = Fairlane(url)

    @app.job("invoices.send", queue="critical")
    def send(number: int, note: str = "") -> None:
        pass

    return app


def send_of(app: Fairlane) -> Task[..., Any]:
    return app.tasks["invoices.send", "1"]
