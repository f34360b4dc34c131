"""Hears the doorbell. It is a hint only: whoever does not hear it polls."""

import logging
from collections.abc import Callable
from uuid import UUID

from fairlane.core.listen import listen
from fairlane.worker.patience import Patience

log = logging.getLogger("fairlane.worker")


class Listener:
    """Calls `work` when jobs of a queue wait, `asked` when one of this worker's is canceled or
    parked."""

    def __init__(
        self, url: str, worker: UUID, *, work: Callable[[str], None], asked: Callable[[], None]
    ) -> None:
        self.url = url
        self.worker = str(worker)
        self._work = work
        self._asked = asked

    async def run(self) -> None:
        patience = Patience()
        while True:
            try:
                await self._listen(patience)
            except patience.passing as error:
                log.info("not listening, polling only: %s", error)
            await patience.wait()

    async def _listen(self, patience: Patience) -> None:
        channels = {"fairlane": self._work, "fairlane_worker": self._on_asked}
        await listen(self.url, channels, name="fairlane listener", ready=patience.reset)

    def _on_asked(self, worker: str) -> None:
        if worker == self.worker:
            self._asked()
