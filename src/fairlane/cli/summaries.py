"""What each command is for, in a line.

Here and not in its module, so that `fairlane --help` imports none of them; a test holds both to be
the same.
"""

SUMMARIES = {
    "up": "Run everything on this machine, until Ctrl-C.",
    "server": "Serve the HTTP API, until SIGTERM or Ctrl-C.",
    "worker": "Claim jobs and run them, until SIGTERM or Ctrl-C.",
    "scheduler": "Make jobs of events and schedules, until SIGTERM or Ctrl-C.",
    "migrate": "Bring the schema up to date.",
    "enqueue": "Enqueue a job of the definition KEY; prints its id.",
    "jobs": "See jobs, cancel them, run them again, ask why they wait.",
    "dead": "See what waits for a person; replay, resolve, ignore.",
    "operations": "Bulk actions: one verb for many jobs, done in steps by whoever schedules.",
    "tenants": "Customers: their plans, limits of their own, pauses.",
    "plans": "Named sets of limits that tenants are on.",
    "queues": "Tiers of work: slots, timeouts, limits, pauses.",
    "definitions": "The kinds of jobs that may run.",
    "triggers": "Rules that make jobs: on an event, or on a schedule in a time zone.",
    "events": "Facts that applications tell; triggers make jobs of them.",
    "tokens": "Who may come in by the API, and as what.",
    "workers": "The processes that claim jobs.",
    "top": "Show what goes on: queues, tenants, workers, rates.",
    "ops": "What an operator asks of the whole installation, cheaply.",
    "usage": "Show runs, worker seconds and time in the queue, by tenant and day.",
    "alerts": "What is wrong: see it, acknowledge it, silence it, say who is told.",
    "metrics": "Rules for Prometheus and dashboards for Grafana, as this version knows them.",
    "doctor": "Say whether all is well, and what to do if not.",
    "bench": "Measure what the verbs cost on this machine.",
}
