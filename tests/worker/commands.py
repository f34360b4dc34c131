"""The commands that the tests run: `python commands.py NAME ...`, every one a real process."""

import json
import mmap
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

REPORT = int(os.environ.get("FAIRLANE_REPORT_FD", "3"))


def report(**said: Any) -> None:
    os.write(REPORT, json.dumps(said, ensure_ascii=False).encode() + b"\n")


def argv(*arguments: str) -> None:
    """What it was called with."""
    report(result=arguments)


def environment() -> None:
    report(
        result={
            "env": dict(os.environ),
            "cwd": str(Path.cwd()),
            "stdin": sys.stdin.read(),
            "open": sorted(int(each.name) for each in Path("/proc/self/fd").iterdir()),
        }
    )


def exits(code: str, said: str = "") -> None:
    print(said, file=sys.stderr)
    sys.exit(int(code))


def tells(name: str, code: str) -> None:
    """Gives away a variable in every way it has."""
    said = os.environ[name]
    print(said, flush=True)
    report(log=said)
    report(phase=said)
    exits(code, said)


def splits(name: str, form: str, at: str, gate: str) -> None:
    """Gives a variable away in some form, in two writes with a pause between them."""
    import base64
    import urllib.parse

    said = os.environ[name]
    told = {
        "raw": said,
        "base64": base64.b64encode(said.encode()).decode(),
        "url": urllib.parse.quote(said, safe=""),
        "hex": said.encode().hex(),
        "json": json.dumps(said)[1:-1],
    }[form]
    for stream in (sys.stdout, sys.stderr):
        stream.write(f"it is {told[: int(at)]}")
        stream.flush()
    while not Path(gate).exists():
        time.sleep(0.02)
    for stream in (sys.stdout, sys.stderr):
        stream.write(f"{told[int(at) :]} !\n")
        stream.flush()
    report(log=f"the word: {told}")
    report(phase=told)
    report(progress={"message": told, "deep": {"x": [told]}})
    report(item=told, state="failed", error=told)
    report(item="fine", state="completed")
    report(result={"echo": told})


def leaks(name: str, filler: str, times: str) -> None:
    """Gives a variable away where it is cut: in a long last line, and over and over in a tail."""
    said = os.environ[name]
    sys.stdout.write(said * int(times) + "." * int(filler))
    exits("3", "." * int(filler) + said + "." * 9_000)


def dies(number: str) -> None:
    print("about to go", file=sys.stderr, flush=True)
    os.kill(os.getpid(), int(number))


def floods(megabytes: str) -> None:
    line = b"0123456789abcde\n" * 65_536
    for _ in range(int(megabytes)):
        sys.stdout.buffer.write(line)
    sys.stdout.buffer.write(b"the last line\n")


def writes_bytes(hexadecimal: str, times: str) -> None:
    sys.stdout.buffer.write(bytes.fromhex(hexadecimal) * int(times))


def speaks(gate: str) -> None:
    """Prints, waits for the gate, and prints again."""
    print("first", flush=True)
    report(phase="waiting", at="the gate")
    report(progress={"done": 1, "total": 2, "message": "half", "done_by": "me"})
    report(log="a word", level="warning")
    _wait_for(gate)
    print("second", flush=True)


def _wait_for(gate: str) -> None:
    while not Path(gate).exists():
        time.sleep(0.01)


def talks_rubbish() -> None:
    os.write(REPORT, b"\xff\xfe not JSON\n[1]\n\n" + b"x" * 3_000_000 + b"\n")
    os.write(REPORT, b'{"phase": 5}\n{"log": null, "level": []}\n{"progress": "much"}\n')
    os.write(REPORT, b'{"phase": "named", "name": 1, "self": 2}\n')
    os.write(REPORT, b'{"progress": {"done": "x", "self": 1}}\n')
    os.write(REPORT, b'{"result": 1}\n{"result": {"last": true}}')


def chatters(lines: str) -> None:
    for number in range(int(lines)):
        report(progress={"done": number + 1})


def huge_result(size: str) -> None:
    report(result="x" * int(size))


def closes_everything(gate: str) -> None:
    for descriptor in (0, 1, 2, REPORT):
        os.close(descriptor)
    _wait_for(gate)


def hangs(pids: str) -> None:
    _note(pids)
    time.sleep(3600)


def _note(pids: str) -> None:
    with Path(pids).open("ab", buffering=0) as file:
        file.write(f"{os.getpid()}\n".encode())


def stops_when_asked(pids: str, code: str, result: str = "") -> None:
    def leave(*_: object) -> None:
        print("leaving", flush=True)
        if result:
            report(result=result)
        os._exit(int(code))

    signal.signal(signal.SIGTERM, leave)
    _note(pids)
    time.sleep(3600)


def stubborn(pids: str) -> None:
    """Ignores being asked, and has daemons of its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _daemon(pids)
    _note(pids)
    time.sleep(3600)


def chains(count: str, fifo: str) -> None:
    """Processes that fork and exit at once, again and again, each in a session of its own; all of
    them hold the fifo."""
    os.open(fifo, os.O_WRONLY)
    end = time.monotonic() + 60
    for number in range(int(count)):
        if os.fork() == 0:
            while time.monotonic() < end:
                if os.fork():
                    os._exit(0)
                if number % 2:
                    os.setsid()
            os._exit(0)
    report(phase="hopping")
    time.sleep(3600)


def leaves_daemon(pids: str) -> None:
    _daemon(pids)
    while not Path(pids).exists():
        time.sleep(0.01)
    report(result="gone")


def _daemon(pids: str) -> None:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _note(pids)
            time.sleep(3600)
        os._exit(0)
    os.wait()


def forks(count: str, pids: str) -> None:
    for _ in range(int(count)):
        if os.fork() == 0:
            _note(pids)
            time.sleep(3600)
    time.sleep(3600)


def bombs(pids: str) -> None:
    """Every process makes two more, a few thousand at the most."""
    end = time.monotonic() + 20
    _note(pids)
    for _ in range(11):
        if os.fork() == 0:
            _note(pids)
    while time.monotonic() < end:
        time.sleep(0.1)


def burns(children: str) -> None:
    for _ in range(int(children)):
        if os.fork() == 0:
            break
    while True:
        pass


def eats(megabytes: str, way: str) -> None:
    count = int(megabytes)
    if way == "shared":
        memory = mmap.mmap(-1, count * 1_048_576)  # what the kernel's limit does not count
        for _ in range(count):
            memory.write(b"x" * 1_048_576)
    elif way == "many":
        for _ in range(4):
            if os.fork() == 0:
                break
        kept = bytearray(b"x" * (count // 5 * 1_048_576))
        assert kept
    else:
        bytearray(count * 1_048_576)
    time.sleep(3600)


def writes_file(megabytes: str) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    with Path("big").open("wb") as file:
        for _ in range(int(megabytes)):
            file.write(b"x" * 1_048_576)


def opens_files(count: str) -> None:
    kept = [os.open("/dev/null", os.O_RDONLY) for _ in range(int(count))]
    report(result=len(kept))


def locks_directory(told: str) -> None:
    Path("inner").mkdir()
    Path("inner/file").write_text("x")
    Path("inner").chmod(0)
    Path(told).write_text(str(Path.cwd()))


def kills_guard(pids: str) -> None:
    _note(pids)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3600)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
