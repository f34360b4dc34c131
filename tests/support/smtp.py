"""A real SMTP server for a test, small and willing: it keeps what it is given."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class Mailbox:
    """What was sent, and how often the server is to be out of order first."""

    port: int = 0
    refusing: int = 0
    asked: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    to: list[list[str]] = field(default_factory=list)


class _Talk(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        box: Mailbox = self.server.box  # type: ignore[attr-defined]
        to: list[str] = []
        box.asked += 1
        if box.asked <= box.refusing:
            self._say("421 out of order")
            return
        self._say("220 a test")
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            match line.split(" ", 1)[0].upper():
                case "EHLO":
                    self._say("250 a test")
                case "RCPT":
                    to.append(line[line.index("<") + 1 : line.index(">")])
                    self._say("250 ok")
                case "DATA":
                    self._say("354 go on")
                    box.mails.append(self._mail())
                    box.to.append(to)
                    self._say("250 taken")
                case "QUIT":
                    self._say("221 bye")
                    return
                case _:
                    self._say("250 ok")

    def _mail(self) -> EmailMessage:
        lines = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b"."))
        found = message_from_bytes(b"".join(lines), policy=policy.default)
        assert isinstance(found, EmailMessage)
        return found

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def mail_server(*, refusing: int = 0) -> Iterator[Mailbox]:
    box = Mailbox(refusing=refusing)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Talk) as server:
        server.daemon_threads = True
        server.box = box  # type: ignore[attr-defined]
        box.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield box
        finally:
            server.shutdown()
            thread.join()
