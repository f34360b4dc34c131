"""Programs that read an argument as code, or as the name of a program: no placeholder may stand in
it.

A shell is never put between: what is here only keeps a definition from calling one by name and
filling a value into the script. It knows the common ones, and is no fence. As an argument of its
own the value is fine: ["sh", "-c", "tar cf - \\"$1\\" | gzip", "sh", "{payload.dir}"].
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from fairlane.executors.template import Template

CODE = "a value may not stand in code that a program runs; pass it as an argument of its own"
PROGRAM = "the program is named outright, with no placeholder"

_SHELLS = ("sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish")

# By program, the option whose next argument is code, or which has it right behind.
_READERS = {
    **dict.fromkeys(_SHELLS, r"-[A-Za-z]*c[A-Za-z]*"),
    **dict.fromkeys(("python", "pypy"), r"-[A-Za-z]*c"),
    **dict.fromkeys(("su", "runuser", "script", "flock"), r"-[A-Za-z]*c|--command=?"),
    **dict.fromkeys(("perl", "ruby"), r"-[A-Za-z0-9.]*[eE]"),
    **dict.fromkeys(("node", "nodejs", "bun"), r"-[A-Za-z]*[ep]|--eval=?|--print=?"),
    **dict.fromkeys(("Rscript", "R", "julia", "groovy", "lua"), r"-[eE]"),
    "deno": r"eval",
    "php": r"-[BREr]",
    "env": r"-[A-Za-z]*S|--split-string=?",
}


@dataclass(frozen=True)
class _Starter:
    """A program that runs the one it is given: behind its options and so many of its own words."""

    valued: str = ""  # its options that are followed by a value
    words: int = 0


_STARTERS = {
    **dict.fromkeys(("nohup", "setsid", "busybox"), _Starter()),
    "env": _Starter("-u -C --unset --chdir"),
    "nice": _Starter("-n --adjustment"),
    "ionice": _Starter("-c -n --class --classdata"),
    "stdbuf": _Starter("-i -o -e --input --output --error"),
    "time": _Starter("-f -o --format --output"),
    "sudo": _Starter("-u -g -C -D -p -r -t -T -U -h --user --group --chdir --prompt"),
    "doas": _Starter("-u -C"),
    "strace": _Starter("-o -e -E -p -s -u"),
    "xargs": _Starter(
        "-a -d -E -I -L -n -P -s --arg-file --delimiter --max-args --max-chars --max-lines "
        "--max-procs --replace"
    ),
    "timeout": _Starter("-k -s --kill-after --signal", words=1),
    "chrt": _Starter("-T -P -D", words=1),
    "taskset": _Starter(words=1),
    "chroot": _Starter(words=1),
    "flock": _Starter("-w -E --wait --timeout --conflict-exit-code", words=1),
}


def misplaced(arguments: Sequence[Template | None]) -> Iterator[tuple[int, str]]:
    """The places of arguments that a value may not stand in, and why; None is one that could not
    be read."""
    programs = list(_programs(arguments))
    code = list(_code(arguments, programs))
    for place in code:
        yield place, CODE
    for place in programs:
        template = arguments[place]
        if place not in code and template is not None and template.names:
            yield place, PROGRAM


def _code(arguments: Sequence[Template | None], programs: Sequence[int]) -> Iterator[int]:
    flag: re.Pattern[str] | None = None
    is_code = False
    for place, template in enumerate(arguments):
        if template is None:
            is_code = False
            continue
        text = template.before
        if template.names:
            # Behind the flag, or glued to it: `-c`, `{payload.x}`; `-c{payload.x}`.
            if is_code or (flag is not None and flag.match(text)):
                yield place
            is_code = False
        elif found := _READERS.get(_name(text)):
            flag, is_code = re.compile(found), False  # `env sh -c`, `timeout 5 bash -c` as well
        elif place in programs and not is_code:
            flag = None  # what follows is this one's: `env tool -S {payload.x}`
        else:
            begun = flag is not None and flag.fullmatch(text) is not None
            is_code = begun or (is_code and text.startswith("-"))  # `bash -c -x CODE`


def _programs(arguments: Sequence[Template | None]) -> Iterator[int]:
    """The places where a program is named: the first, and what one after another starts."""
    starter: _Starter | None = None
    words, is_value = 0, False
    for place, template in enumerate(arguments):
        text = "" if template is None else template.before
        if starter is None:
            if place:
                return
            yield place
            starter = _started(template)
        elif is_value:
            is_value = False
        elif text.startswith("-") and text != "-":
            is_value = text in starter.valued.split()
        elif starter is _STARTERS["env"] and (text == "-" or "=" in text):
            pass  # a variable
        elif words < starter.words:
            words += 1
        else:
            yield place
            starter, words = _started(template), 0


def _started(template: Template | None) -> _Starter | None:
    if template is None or template.names:
        return None
    return _STARTERS.get(_name(template.before))


def _name(text: str) -> str:
    return re.sub(r"[\d.]+$", "", PurePosixPath(text).name)
