"""The `http` executor: a job is one signed call to an application server."""
