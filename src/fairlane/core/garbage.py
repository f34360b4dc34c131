"""How often a process of ours looks for cycles."""

import gc


def look_less_often() -> None:
    """A batch is thousands of small objects, which are all gone a moment later: looking among them
    for cycles every few hundred is a fifth of the work. What was loaded at the start stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
