"""Leaves no descendant behind, not even a chain of processes that each fork and exit at once.

A listing of such a chain is out of date before it has been read to its end, and one that is empty
proves nothing. What proves it is the kernel's word that this process has no child: every orphan
below a subreaper becomes its child, so where there is no child there is no descendant.
"""

import contextlib
import os
import signal
import sys
import time

from fairlane.executors.tree import NotTold, children, descendants

PATIENCE = 60.0  # seconds until it is said, and until what cannot be killed is left


def kill_descendants() -> bool:
    """Kill and reap until none is left; false when some had to be left after all."""
    me = os.getpid()
    complain_at = time.monotonic() + PATIENCE
    before: set[int] = set()
    pause = 0.001
    while not _all_reaped():
        found, others = _kill_below(me)
        if time.monotonic() >= complain_at:
            complain_at += PATIENCE
            _say(found)
            if not others:
                return False
        # Against a chain only the next round at once will do. What has been killed before takes
        # its time to die, and what runs as somebody else is waited for.
        if found - before:
            pause = 0.001
        else:
            time.sleep(pause)
            pause = min(pause * 2, 0.5)
        before = found
    return True


def _all_reaped() -> bool:
    # Never waited for: one that was born after the listing has not been killed yet.
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return False
    return True


def _kill_below(root: int) -> tuple[set[int], bool]:
    """Kill each as it is seen, from the top: who forks now dies of it before the fork is done.
    Answers whom it saw, and whether one of them is somebody else's."""
    found: set[int] = set()
    groups = {os.getpgrp()}
    others = False
    layer = [root]
    while layer:
        following: list[int] = []
        for parent in layer:
            try:
                below = children(parent)
            except NotTold:
                below = list(descendants(root))
            for pid in below:
                if pid not in found:
                    found.add(pid)
                    following.append(pid)
                    others |= not _kill(pid, groups)
        layer = following
    return found, others


def _kill(pid: int, groups: set[int]) -> bool:
    """False when it may not be killed."""
    try:
        # A group is killed as one, those who are being born into it included. Ours is spared: it
        # has this process in it. Nobody but descendants can be in another, for none can join a
        # group outside of its session.
        group = os.getpgid(pid)
        if group not in groups:
            groups.add(group)
            os.killpg(group, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


def _say(left: set[int]) -> None:
    some = ", ".join(map(str, sorted(left)[:10])) or "too short-lived to name"
    sys.stderr.write(
        f"fairlane: ERROR: {len(left)} processes of a job are not dead {PATIENCE:g} s after they "
        f"were killed: {some}; look at them with: ps -o pid,ppid,user,stat,args\n"
    )
    sys.stderr.flush()
