"""Every page and every action in one table: its name for `u()`, its path, who may, where it stands
in the navigation. tests/web walks this table for every role."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.responses import Response

from fairlane.access.principal import Principal
from fairlane.access.roles import Permission, Role
from fairlane.web import live, signin
from fairlane.web.views import (
    account,
    all_matching,
    auditing,
    bulk,
    dead_letter,
    dead_letters,
    events,
    home,
    job,
    jobs,
    jobs_export,
    keys,
    operating,
    overview,
    palette,
    people,
    running,
    saved_views,
    trigger,
    trigger_form,
    triggers,
    usage,
)
from fairlane.web.views.ops import (
    alerts,
    definitions,
    fairness,
    plans,
    queues,
    tenants,
    workers,
)
from fairlane.web.visit import Visit

View = Callable[[Visit], Awaitable[Response]]

READ, WRITE = Permission.READ, Permission.WRITE
ADMINISTER, OPERATE = Permission.ADMINISTER, Permission.OPERATE


@dataclass(frozen=True)
class Page:
    """One path. With `group` it stands in the navigation, of a tenant where the path names one."""

    name: str
    path: str
    view: View
    needs: Permission | None = None
    title: str = ""
    group: str = ""
    key: str = ""
    """`g` and this letter go there."""
    method: str = "GET"
    under: str = ""
    """The page of the navigation that this one belongs to."""
    is_guarded: bool = True
    """Whether its form must carry the session's word; a sign-in has no session yet."""
    needs_nothing: bool = False
    """Answers without a database: our own files."""

    @property
    def of_tenant(self) -> bool:
        return "{tenant}" in self.path

    def lets_in(self, who: Principal) -> bool:
        return self.lets_in_role(who.role)

    def lets_in_role(self, role: Role) -> bool:
        return self.needs is not None and role.may(self.needs)


def _post(name: str, path: str, view: View, needs: Permission, under: str) -> Page:
    return Page(name, path, view, needs, method="POST", under=under)


PAGES: tuple[Page, ...] = (
    Page("home", "/", home.home, READ),
    Page("static", "/static/{version}/{file}", home.static, needs_nothing=True),
    Page("events", "/events", live.events, READ),
    # Signing in
    Page("login", "/login", signin.form, title="Sign in"),
    Page("login_token", "/login", signin.by_token, method="POST", is_guarded=False),
    Page("login_oidc", "/login/oidc", signin.to_provider),
    Page("login_back", "/login/oidc/back", signin.from_provider),
    _post("logout", "/logout", signin.out, READ, ""),
    Page("account", "/account", account.show, READ, "Account"),
    _post("account_save", "/account", account.save, READ, "account"),
    Page("palette", "/palette", palette.found, READ),
    # A tenant's: work
    Page("overview", "/t/{tenant}", overview.show, READ, "Overview", "Work", "o"),
    Page("jobs", "/t/{tenant}/jobs", jobs.show, READ, "Jobs", "Work", "j"),
    _post("jobs_act", "/t/{tenant}/jobs", jobs.act, WRITE, "jobs"),
    Page("jobs_json", "/t/{tenant}/jobs.json", jobs_export.as_json, READ, under="jobs"),
    Page("jobs_csv", "/t/{tenant}/jobs.csv", jobs_export.as_csv, READ, under="jobs"),
    Page("all_jobs", "/t/{tenant}/jobs/all", all_matching.show, ADMINISTER, under="jobs"),
    _post("all_jobs_act", "/t/{tenant}/jobs/all", all_matching.act, ADMINISTER, "jobs"),
    _post("view_save", "/t/{tenant}/views", saved_views.save, READ, "jobs"),
    _post("view_forget", "/t/{tenant}/views/forget", saved_views.forget, READ, "jobs"),
    Page("run", "/t/{tenant}/jobs/new", running.show, WRITE, "Run job", under="jobs"),
    _post("run_job", "/t/{tenant}/jobs/new", running.run, WRITE, "jobs"),
    Page("job", "/t/{tenant}/jobs/{job}", job.show, READ, "Job", under="jobs"),
    Page("job_log", "/t/{tenant}/jobs/{job}/log", job.log, READ, under="jobs"),
    _post("job_cancel", "/t/{tenant}/jobs/{job}/cancel", job.cancel, WRITE, "jobs"),
    _post("job_retry", "/t/{tenant}/jobs/{job}/retry", job.retry, WRITE, "jobs"),
    _post("job_priority", "/t/{tenant}/jobs/{job}/priority", job.move, WRITE, "jobs"),
    Page("dead_letters", "/t/{tenant}/dlq", dead_letters.show, READ, "Dead letters", "Work", "d"),
    _post("dead_letters_act", "/t/{tenant}/dlq", dead_letters.act, ADMINISTER, "dead_letters"),
    Page(
        *("dead_letter", "/t/{tenant}/dlq/{dead}", dead_letter.show, READ, "Dead letter"),
        under="dead_letters",
    ),
    _post(
        *("dead_letter_settle", "/t/{tenant}/dlq/{dead}", dead_letter.settle, ADMINISTER),
        "dead_letters",
    ),
    _post(
        *("dead_letter_replay", "/t/{tenant}/dlq/{dead}/replay", dead_letter.replay, ADMINISTER),
        "dead_letters",
    ),
    _post(
        *("dead_letter_assign", "/t/{tenant}/dlq/{dead}/assign", dead_letter.assign, ADMINISTER),
        "dead_letters",
    ),
    Page("operations", "/t/{tenant}/bulk", bulk.show_all, READ, "Bulk operations", "Work", "b"),
    Page(
        *("operation", "/t/{tenant}/bulk/{operation}", bulk.show, READ, "Bulk operation"),
        under="operations",
    ),
    _post(
        *("operation_stop", "/t/{tenant}/bulk/{operation}/stop", bulk.stop, ADMINISTER),
        "operations",
    ),
    _post(
        *("operation_resume", "/t/{tenant}/bulk/{operation}/resume", bulk.resume, ADMINISTER),
        "operations",
    ),
    Page("triggers", "/t/{tenant}/triggers", triggers.show, READ, "Triggers", "Work", "t"),
    Page("trigger_new", "/t/{tenant}/triggers/new", trigger_form.new, ADMINISTER, under="triggers"),
    _post("trigger_save", "/t/{tenant}/triggers", trigger_form.save, ADMINISTER, "triggers"),
    Page("trigger", "/t/{tenant}/triggers/{trigger}", trigger.show, READ, under="triggers"),
    Page(
        "trigger_edit",
        "/t/{tenant}/triggers/{trigger}/edit",
        trigger_form.edit,
        ADMINISTER,
        under="triggers",
    ),
    _post(
        "trigger_fire", "/t/{tenant}/triggers/{trigger}/fire", trigger.fire, ADMINISTER, "triggers"
    ),
    _post(
        "trigger_switch",
        "/t/{tenant}/triggers/{trigger}/switch",
        triggers.switch,
        ADMINISTER,
        "triggers",
    ),
    _post(
        "trigger_delete",
        "/t/{tenant}/triggers/{trigger}/delete",
        triggers.delete,
        ADMINISTER,
        "triggers",
    ),
    Page("events_list", "/t/{tenant}/events", events.show, READ, "Events", "Work", "e"),
    _post("event_resend", "/t/{tenant}/events", events.resend, WRITE, "events_list"),
    # An id of an event is the sender's, and may have slashes in it.
    Page("event", "/t/{tenant}/events/{event:path}", events.one, READ, under="events_list"),
    # A tenant's: workspace
    Page("usage", "/t/{tenant}/usage", usage.show, READ, "Usage and limits", "Workspace"),
    Page("usage_csv", "/t/{tenant}/usage.csv", usage.export, READ, under="usage"),
    Page("people", "/t/{tenant}/people", people.show, ADMINISTER, "People", "Workspace"),
    Page("keys", "/t/{tenant}/keys", keys.show, ADMINISTER, "API keys", "Workspace"),
    _post("keys_create", "/t/{tenant}/keys", keys.create, ADMINISTER, "keys"),
    _post("keys_revoke", "/t/{tenant}/keys/{token}/revoke", keys.revoke, ADMINISTER, "keys"),
    Page("audit", "/t/{tenant}/audit", auditing.show, ADMINISTER, "Audit log", "Workspace"),
    Page("audit_csv", "/t/{tenant}/audit.csv", auditing.export, ADMINISTER, under="audit"),
    # The operator's
    Page("ops", "/ops", operating.show, OPERATE, "Overview", "Operate", "o"),
    Page("ops_jobs", "/ops/jobs", jobs.show, OPERATE, "Jobs", "Operate", "j"),
    _post("ops_jobs_act", "/ops/jobs", jobs.act, OPERATE, "ops_jobs"),
    Page("queues", "/ops/queues", queues.show, OPERATE, "Queues", "Operate", "q"),
    _post("queue_create", "/ops/queues", queues.create, OPERATE, "queues"),
    Page("queue", "/ops/queues/{queue}", queues.one, OPERATE, "Queue", under="queues"),
    _post("queue_save", "/ops/queues/{queue}", queues.save, OPERATE, "queues"),
    _post("queue_pause", "/ops/queues/{queue}/pause", queues.pause, OPERATE, "queues"),
    _post("queue_resume", "/ops/queues/{queue}/resume", queues.resume, OPERATE, "queues"),
    Page("fairness", "/ops/fairness", fairness.show, OPERATE, "Fairness", "Operate", "f"),
    _post("fairness_weigh", "/ops/fairness", fairness.weigh, OPERATE, "fairness"),
    Page("workers", "/ops/workers", workers.show, OPERATE, "Workers", "Operate", "w"),
    Page("worker", "/ops/workers/{worker}", workers.one, OPERATE, "Worker", under="workers"),
    _post("worker_drain", "/ops/workers/{worker}/drain", workers.drain, OPERATE, "workers"),
    _post("worker_forget", "/ops/workers/{worker}/forget", workers.forget, OPERATE, "workers"),
    Page("alerts", "/ops/alerts", alerts.show, OPERATE, "Alerts", "Operate", "a"),
    Page(
        *("alert_silence", "/ops/alerts/silence", alerts.silence_form, OPERATE),
        title="Silence alerts",
        under="alerts",
    ),
    _post("alert_silence_save", "/ops/alerts/silence", alerts.silence, OPERATE, "alerts"),
    _post("silence_end", "/ops/alerts/silences/{silence}", alerts.end_silence, OPERATE, "alerts"),
    Page("alert_rule", "/ops/alerts/rules/{rule}", alerts.rule, OPERATE, "Rule", under="alerts"),
    _post("alert_rule_save", "/ops/alerts/rules/{rule}", alerts.save_rule, OPERATE, "alerts"),
    _post("alert_test", "/ops/alerts/rules/{rule}/test", alerts.test_rule, OPERATE, "alerts"),
    _post("alert_ack", "/ops/alerts/{alert}/ack", alerts.acknowledge, OPERATE, "alerts"),
    Page("tenants", "/ops/tenants", tenants.show, OPERATE, "Tenants", "Manage"),
    _post("tenant_create", "/ops/tenants", tenants.create, OPERATE, "tenants"),
    Page("tenant", "/ops/tenants/{slug}", tenants.one, OPERATE, "Tenant", under="tenants"),
    _post("tenant_save", "/ops/tenants/{slug}", tenants.save, OPERATE, "tenants"),
    _post("tenant_pause", "/ops/tenants/{slug}/pause", tenants.pause, OPERATE, "tenants"),
    _post("tenant_resume", "/ops/tenants/{slug}/resume", tenants.resume, OPERATE, "tenants"),
    Page("plans", "/ops/plans", plans.show, OPERATE, "Plans", "Manage"),
    _post("plan_create", "/ops/plans", plans.create, OPERATE, "plans"),
    Page("plan", "/ops/plans/{plan}", plans.one, OPERATE, "Plan", under="plans"),
    _post("plan_save", "/ops/plans/{plan}", plans.save, OPERATE, "plans"),
    Page("definitions", "/ops/definitions", definitions.show, OPERATE, "Job definitions", "Manage"),
    Page(
        *("definition", "/ops/definitions/{definition}", definitions.one, OPERATE),
        title="Job definition",
        under="definitions",
    ),
    _post(
        *("definition_pause", "/ops/definitions/{definition}/pause", definitions.pause, OPERATE),
        under="definitions",
    ),
    _post(
        *("definition_resume", "/ops/definitions/{definition}/resume", definitions.resume, OPERATE),
        under="definitions",
    ),
    Page("ops_audit", "/ops/audit", auditing.show, OPERATE, "Audit log", "Manage"),
    Page("ops_audit_csv", "/ops/audit.csv", auditing.export, OPERATE, under="ops_audit"),
    Page("ops_audit_json", "/ops/audit.json", auditing.export_json, OPERATE, under="ops_audit"),
)
