"""Every order in which sessions can take the steps of the core's verbs, on a real PostgreSQL."""
