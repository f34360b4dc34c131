"""Something to look at: an app with eight kinds of jobs, and a stream of them for four tenants.

The tasks only wait and now and then go wrong, as real ones do. `python -m fairlane.demo` keeps the
stream going; a worker runs it with `--app fairlane.demo:app`.
"""

from fairlane.demo.tasks import app

__all__ = ["app"]
