"""`make screenshots`: each page in both themes, to build/screenshots."""

import sys
from pathlib import Path

from playwright.sync_api import BrowserContext

from support import cluster
from web.browser import VIEW, chromium, sign_in
from web.ops_stage import furnish
from web.stage import Stage, dress, serving

SHOTS = {
    "overview": "/t/acme",
    "jobs": "/t/acme/jobs",
    "jobs-filtered": "/t/acme/jobs?state=failed,dead",
    "job-running": "/t/acme/jobs/{running}",
    "job-queued": "/t/acme/jobs/{queued}",
    "job-dead": "/t/acme/jobs/{dead_letter}?tab=attempts",
    "dead-letters": "/t/acme/dlq",
    "dead-letters-flat": "/t/acme/dlq?view=list",
    "dead-letters-none": "/t/acme/dlq?status=ignored",
    "dead-letter": "/t/acme/dlq/{dead_xss}",
    "bulk": "/t/acme/bulk",
    "bulk-one": "/t/acme/bulk/{operation}",
    "usage": "/t/acme/usage",
    "people": "/t/acme/people",
    "keys": "/t/acme/keys",
    "audit": "/t/acme/audit",
    "job-items": "/t/acme/jobs/{items}",
    "run": "/t/acme/jobs/new?kind=reports.build",
    "triggers": "/t/acme/triggers?type=event",
    "trigger": "/t/acme/triggers/{schedule}",
    "trigger-test": "/t/acme/triggers/{on_event}?test=1",
    "trigger-new": "/t/acme/triggers/new",
    "events": "/t/acme/events",
    "event": "/t/acme/events/{event}",
    "account": "/account",
    "empty": "/t/empty",
    "ops": "/ops",
    "queues": "/ops/queues",
    "queue": "/ops/queues/default",
    "fairness": "/ops/fairness",
    "fairness-what-if": "/ops/fairness?w.acme=3&w.globex=1",
    "workers": "/ops/workers",
    "worker": "/ops/workers/{worker}",
    "alerts": "/ops/alerts",
    "alert-rule": "/ops/alerts/rules/queue_backlog",
    "silence": "/ops/alerts/silence?rule=queue_backlog&subject=default",
    "tenants": "/ops/tenants",
    "tenant": "/ops/tenants/globex",
    "plans": "/ops/plans",
    "plan": "/ops/plans/pro?max_running=2&weight=2",
    "definitions": "/ops/definitions",
    "definition": "/ops/definitions/{definition}",
    "ops-jobs": "/ops/jobs",
    "ops-audit": "/ops/audit",
    "missing": "/t/acme/nothing",
}


def main(folder: Path, only: set[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with cluster.running() as server:
        import asyncio

        template = asyncio.run(server.template())
        with server.fresh(template) as url, serving(url) as address, chromium() as browser:
            stage = Stage(url)
            stage.do(lambda core: dress(core, stage))
            stage.do(lambda core: furnish(core, stage))
            for theme in ("light", "dark"):
                context = browser.new_context(viewport=VIEW, color_scheme=theme)
                _shoot(context, f"{address}/login", folder / f"login-{theme}.png")
                sign_in(context, address, stage.tokens["operator"])
                for name, path in SHOTS.items():
                    if not only or name in only:
                        to = address + path.format(**stage.jobs, **stage.names)
                        _shoot(context, to, folder / f"{name}-{theme}.png")
                context.close()


def _shoot(context: BrowserContext, url: str, file: Path) -> None:
    page = context.new_page()
    page.goto(url)
    page.wait_for_load_state("load")
    page.wait_for_timeout(700)
    page.screenshot(path=str(file))
    page.close()
    print(file)


if __name__ == "__main__":
    main(Path("build/screenshots"), set(sys.argv[1:]))
