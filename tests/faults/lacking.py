"""What cannot be done to a system on this machine, or not by this harness, each with its reason."""

import subprocess

from support.programs import path_of


def lacking() -> dict[str, str]:
    found = {
        "power cut that forgets unsynced pages": "needs LazyFS or dm-flakey; kill -9 keeps them. "
        "The scene weak_settings asks for the settings that guard against it",
    }
    if path_of("pgbouncer") is None:
        found["restart_pooler"] = "pgbouncer is not installed"
    if why := _no_netem():
        found["packets lost, doubled, reordered"] = f"{why}; delay, cut and half-open are a proxy's"
    return found


def _no_netem() -> str:
    """Why the kernel will not lose packets for us, if it won't."""
    tc, unshare = path_of("tc"), path_of("unshare")
    if tc is None or unshare is None:
        return "tc or unshare is not installed"
    alone = [unshare, "--net", tc, "qdisc", "add", "dev", "lo"]
    done = subprocess.run(
        [*alone, "root", "netem", "loss", "1%"], capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else f"the kernel has no netem ({done.stderr.strip()})"
