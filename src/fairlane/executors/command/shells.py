"""Programs that read an argument as code: no placeholder may stand in it.

A shell is never put between: what is here only keeps a definition from calling one by name and
filling a value into the script. As an argument of its own the value is fine:
["sh", "-c", "tar cf - \\"$1\\" | gzip", "sh", "{payload.dir}"].
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from fairlane.executors.template import Template

_READERS = {
    **dict.fromkeys(("sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish"), r"-[A-Za-z]*c"),
    **dict.fromkeys(("python", "pypy", "su", "runuser"), r"-[A-Za-z]*c"),
    **dict.fromkeys(("perl", "ruby"), r"-[A-Za-z]*[eE]"),
    **dict.fromkeys(("node", "nodejs", "bun"), r"-[A-Za-z]*[ep]|--eval|--print"),
    "php": r"-r",
    "lua": r"-e",
}


def code_arguments(arguments: Sequence[Template]) -> Iterator[int]:
    """The places of arguments that a program would read as code though a value is in them."""
    flag: re.Pattern[str] | None = None
    is_code = False
    for place, template in enumerate(arguments):
        text = template.before
        if template.names:
            # Behind the flag, or glued to it: `-c`, `{payload.x}`; `-c{payload.x}`.
            if is_code or (flag is not None and flag.match(text)):
                yield place
            is_code = False
        elif found := _READERS.get(re.sub(r"[\d.]+$", "", PurePosixPath(text).name)):
            flag, is_code = re.compile(found), False  # `env sh -c`, `timeout 5 bash -c` as well
        else:
            begun = flag is not None and flag.fullmatch(text) is not None
            is_code = begun or (is_code and text.startswith("-"))  # `bash -c -x CODE`
