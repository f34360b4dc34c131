"""The kinds of faults, and how many seconds each lasts; faults.nemesis has one method a kind."""

LASTS: dict[str, tuple[float, float]] = {
    # Processes.
    "kill_worker": (0.0, 1.0),  # kill -9; started again after so long
    "kill_child": (0.0, 0.0),  # of a supervisor, which starts another
    "kill_supervisor": (0.0, 1.0),
    "kill_server": (0.0, 0.5),
    "kill_scheduler": (0.0, 1.0),
    "term_worker": (0.0, 0.5),
    "term_server": (0.0, 0.5),
    "stop_worker": (4.0, 6.0),  # SIGSTOP past the lease, then SIGCONT: a zombie
    "stop_scheduler": (3.0, 6.0),
    "same_name": (0.0, 0.0),  # a worker of the same name registers and is never heard of again
    "stale_calls": (2.5, 3.5),  # by one whose lease is over: everything that a worker can say
    # The database.
    "terminate_backend": (0.0, 0.0),
    "kill_backend": (0.0, 0.0),  # SIGKILL: the server restarts by itself, as after a crash
    "restart_fast": (0.0, 0.0),
    "restart_immediate": (0.0, 0.0),
    "restart_pooler": (0.0, 0.0),
    "no_connections": (1.0, 2.5),
    "old_snapshot": (3.0, 8.0),
    "lock_share": (0.5, 2.0),  # by a transaction that then does nothing
    "lock_gate": (0.5, 2.0),
    "lock_tenant": (0.5, 2.0),
    "lock_worker": (1.0, 2.5),  # its heartbeat waits
    # The network, by a proxy that knows the protocol.
    "delay": (1.0, 3.0),
    "delay_heartbeat": (2.0, 4.0),
    "cut": (0.0, 0.0),
    "blackhole": (2.0, 5.0),
    "blackhole_workers": (5.0, 6.0),  # past the lease
    "lose_acks": (1.0, 2.0),
    # Jobs.
    "poison": (0.0, 0.0),  # kills its worker
    "block_loop": (4.0, 5.0),  # longer than the lease
    "cancel_running": (0.0, 0.0),
    "cancel_deaf": (0.0, 0.0),  # a job that ignores it, and its children
    # People.
    "flip_limits": (1.0, 3.0),
    "pause_tenant": (0.5, 3.0),
    "pause_queue": (0.5, 2.0),
    "drain_worker": (0.0, 0.0),  # it finishes what it has, and goes
}

# After these the database has forgotten what it had not yet written: claims, by choice.
CRASHES = frozenset({"kill_backend", "restart_immediate"})
# While these last, some or all cannot reach the database.
OUTAGES = CRASHES | {
    "restart_fast",
    "restart_pooler",
    "no_connections",
    "blackhole",
    "blackhole_workers",
    "delay",
    "delay_heartbeat",
    "cut",
    "lose_acks",
    "terminate_backend",
    "lock_share",
    "lock_gate",
    "lock_tenant",
    "lock_worker",
}

# Those whose time is measured, each with the system to itself.
CALM = (
    "kill_worker",
    "term_worker",
    "restart_fast",
    "cancel_running",
    "kill_child",
    "cancel_deaf",
    "restart_immediate",
    "blackhole_workers",
    "poison",
)
