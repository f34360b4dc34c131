"""The environment of a command: what it is given by name, and nothing else of the worker's."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairlane.errors import FairlaneError
from fairlane.executors.template import Template, ValueMissing, value_of

INHERITED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
PATH_SETTING = "FAIRLANE_COMMAND_PATH"  # of the worker: where commands are looked for

LONGEST = 65_536  # bytes of a value
LONGEST_ALL = 262_144

# Where programs are found and what they keep: the definition may say it, a value may not.
PLAIN = frozenset({"PATH", "HOME", "TMPDIR", "SHELL", "EDITOR", "PAGER", "LANG", "TZ"})

# Code that loaders, shells and interpreters take in before the program has its say: the lists that
# sudo and glibc drop for a program with more rights than its caller, and their younger kin.
_REFUSED = re.compile(
    r"""(?x)
      LD_.* | DYLD_.* | _RLD.* | LIBPATH | SHLIB_PATH | GLIBC_TUNABLES | GCONV_PATH | MALLOC_.*
    | LOCPATH | NLSPATH | HOSTALIASES | LOCALDOMAIN | RES_OPTIONS | GETCONF_DIR
    | IFS | CDPATH | ENV | BASH_.* | BASHOPTS | SHELLOPTS | PS4 | PROMPT_COMMAND | GLOBIGNORE
    | FPATH | ZDOTDIR | NULLCMD | READNULLCMD
    | PYTHON(?:PATH|HOME|STARTUP|INSPECT|USERBASE|BREAKPOINT|EXECUTABLE|WARNINGS|PLATLIBDIR)
    | PERL5?LIB | PERL5OPT | PERL5DB | PERLIO_DEBUG | RUBYLIB | RUBYOPT | NODE_OPTIONS | NODE_PATH
    | JAVA_TOOL_OPTIONS | _JAVA_OPTIONS | JDK_JAVA_OPTIONS | CLASSPATH | LUA_INIT.* | LUA_C?PATH.*
    | GIT_(?:SSH|SSH_COMMAND|ASKPASS|EXTERNAL_DIFF|PROXY_COMMAND|EDITOR|PAGER|EXEC_PATH|CONFIG.*)
    | LESSOPEN | LESSCLOSE | SSH_ASKPASS | KRB5_CONFIG.* | KRB5_KTNAME | OPENSSL_(?:CONF|MODULES)
    """
)
# The worker's own: its database, its keys, its secrets.
_OURS = re.compile(r"FAIRLANE_.*|DATABASE_URL|PG[A-Z]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class EnvironmentRefused(FairlaneError):
    """A value cannot be passed on in a variable."""


def fault_in_name(name: Any) -> str | None:
    """Why `env` may not set this variable."""
    if not isinstance(name, str) or not _NAME.match(name) or len(name) > 128:
        return "a variable's name is letters, digits and _, and begins with no digit"
    if name.upper().startswith("FAIRLANE_"):
        return f"{name} is Fairlane's to set"
    if _REFUSED.fullmatch(name.upper()):
        return f"{name} may not be set: it makes programs load other code"
    return None


def fault_in_inherited(name: Any) -> str | None:
    """Why the worker's variable may not be passed on."""
    if isinstance(name, str) and _OURS.fullmatch(name.upper()):
        return f"{name} is the worker's own and is not passed on"
    return fault_in_name(name)


@dataclass(frozen=True)
class Variable:
    template: Template
    optional: bool = False  # left out when a value is absent or null


@dataclass(frozen=True)
class Environment:
    """Variables by template, and names to pass on."""

    variables: Mapping[str, Variable] = field(default_factory=dict)
    inherit: tuple[str, ...] = ()

    def build(
        self,
        values: Mapping[str, Any],
        own: Mapping[str, str],
        secret: Callable[[str], str],
        worker: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """The variables of one attempt; `own` are Fairlane's, which nothing can hide."""
        env = self._inherited(os.environ if worker is None else worker)
        for name, variable in self.variables.items():
            text = self._text(name, variable, values, secret)
            if text is not None:
                env[name] = text
        env |= own
        size = sum(len(name) + len(text.encode()) + 2 for name, text in env.items())
        if size > LONGEST_ALL:
            raise EnvironmentRefused(
                f"the environment has {size} bytes; the limit is {LONGEST_ALL}"
            )
        return env

    def _inherited(self, worker: Mapping[str, str]) -> dict[str, str]:
        kept = {worker.get(name) for name in ("FAIRLANE_DATABASE_URL", "DATABASE_URL")} - {None}
        env = {
            name: worker[name]
            for name in (*INHERITED, *self.inherit)
            # Under another name it would be the same key to everybody's jobs.
            if name in worker and worker[name] not in kept
        }
        path = worker.get(PATH_SETTING) or env.get("PATH") or DEFAULT_PATH
        # An entry that is empty or relative means the working directory, where jobs write.
        env["PATH"] = ":".join(part for part in path.split(":") if part.startswith("/"))
        env.setdefault("LANG", "C.UTF-8")
        return env

    def _text(
        self,
        name: str,
        variable: Variable,
        values: Mapping[str, Any],
        secret: Callable[[str], str],
    ) -> str | None:
        names = [n for n in variable.template.names if n[0] != "secret"]
        if variable.optional and any(value_of(n, values) is None for n in names):
            return None
        try:
            text = variable.template.render(values, secret=secret)
            size = len(text.encode())
        except ValueMissing as error:
            raise EnvironmentRefused(f"variable {name}: {error}") from None
        except UnicodeEncodeError:
            raise EnvironmentRefused(f"variable {name} has half a character") from None
        if "\x00" in text:
            raise EnvironmentRefused(f"variable {name} has a NUL character")
        if size > LONGEST:
            raise EnvironmentRefused(
                f"variable {name} has {size} bytes; the limit is {LONGEST}: use stdin: payload"
            )
        return text
