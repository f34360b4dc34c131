"""Image, compose, chart and units: valid, and in words that this version knows."""

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from deploy.files import CHART, DEPLOY, ROOT, UNITS, chart, checker, compose, parsed, run, seconds
from deploy.files import unit as read_unit
from fairlane.config import Settings
from fairlane.metrics import rules
from fairlane.metrics.dashboards import DASHBOARDS
from fairlane.version import VERSION
from fairlane.worker.main import LAST_WORDS
from support.programs import needed

STOPPED = Settings.grace_seconds + LAST_WORDS
EVERYTHING = (
    "--set=workers.default.autoscaling.enabled=true,workers.default.processes=2",
    "--set=workers.default.app=shop:app",
    "--set=serviceMonitor.enabled=true,server.ingress.enabled=true,server.ingress.tlsSecret=tls",
    "--set=settings.FAIRLANE_BASE_URL=https://jobs.example.com",
)


def docker_words(name: str) -> list[str]:
    text = (DEPLOY / "Dockerfile").read_text()
    found = re.findall(rf"^{name} (\[.*\])$", text, re.MULTILINE)
    words: list[str] = json.loads(found[-1])
    return words


def pods(documents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = [each for each in documents if each["kind"] in ("Deployment", "Job")]
    return {each["metadata"]["name"]: each["spec"]["template"]["spec"] for each in found}


# Valid -----------------------------------------------------------------------


def test_the_image_pleases_its_linter() -> None:
    run(checker("hadolint"), DEPLOY / "Dockerfile")


def test_compose_is_what_its_schema_says() -> None:
    run(
        checker("check-jsonschema"),
        "--builtin-schema",
        "vendor.compose-spec",
        DEPLOY / "compose.yaml",
    )


def test_the_chart_renders_into_what_kubernetes_takes(tmp_path: Path) -> None:
    run(checker("helm"), "lint", "--strict", CHART)
    documents = chart(*EVERYTHING)
    kinds = {each["kind"] for each in documents}
    assert {"ScaledObject", "ServiceMonitor", "Ingress", "NetworkPolicy", "Job"} <= kinds
    theirs = ("keda.sh", "monitoring.coreos.com")  # kinds that Kubernetes itself does not know
    own = [each for each in documents if not each["apiVersion"].startswith(theirs)]
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all(own))
    run(checker("kubernetes-validate"), "--strict", "--kubernetes-version", "1.29", path)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("workers.default.queues.default=0", "minimum: got 0, want 1"),
        ("workers.default.app=shop", "does not match pattern"),
        ("sever.replicas=3", "additional properties 'sever' not allowed"),
        ("settings.BASE_URL=x", "does not match pattern"),
    ],
)
def test_a_wrong_value_of_the_chart_is_refused(wrong: str, said: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(said)):
        chart(f"--set={wrong}")


def test_the_yaml_is_laid_out_for_the_eye(tmp_path: Path) -> None:
    rules = tmp_path / "yamllint"
    rules.write_text(
        "extends: default\nrules: {line-length: disable, document-start: disable, "
        "braces: {max-spaces-inside: 0}, comments: {min-spaces-from-content: 1}}\n"
    )
    files = [DEPLOY / "compose.yaml", DEPLOY / "prometheus" / "prometheus.yml"]
    files += [CHART / "values.yaml", CHART / "Chart.yaml", DEPLOY / "grafana" / "provisioning"]
    run(checker("yamllint"), "--strict", "--config-file", rules, *files)


def test_prometheus_takes_its_settings() -> None:
    promtool = needed("promtool", "prometheus")
    run(promtool, "check", "config", "--syntax-only", DEPLOY / "prometheus" / "prometheus.yml")
    run(promtool, "check", "rules", DEPLOY / "prometheus" / "fairlane-rules.yml")


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_takes_the_units_and_finds_them_caged(path: Path, tmp_path: Path) -> None:
    systemd = needed("systemd-analyze", "systemd")
    ours = str(Path(sys.prefix) / "bin" / "fairlane")
    for each in UNITS:
        text = each.read_text().replace("/opt/fairlane/bin/fairlane", ours)
        (tmp_path / each.name).write_text(text)
    run(systemd, "verify", "--man=no", tmp_path / path.name)
    run(systemd, "security", "--offline=true", "--threshold=20", tmp_path / path.name)


# In words that this version knows --------------------------------------------------


def test_every_command_line_is_one_that_fairlane_takes() -> None:
    lines = [docker_words("CMD")]
    lines += [each["command"] for each in compose()["services"].values() if "command" in each]
    default = read_unit(DEPLOY / "systemd" / "worker-default.env")["WORKER_ARGS"][0]
    for path in UNITS:
        (start,) = read_unit(path)["ExecStart"]
        program, *words = shlex.split(start.replace("$WORKER_ARGS", default))
        assert program == "/opt/fairlane/bin/fairlane"
        lines.append(words)
    assert len(lines) == 9
    for words in lines:
        parsed(words)
    with pytest.raises(click.UsageError):
        parsed(["worker", "--queues", "default=8"])


def test_every_command_line_of_the_chart_is_one_that_fairlane_takes() -> None:
    for name, pod in pods(chart(*EVERYTHING)).items():
        (container,) = pod["containers"]
        found = parsed(container["args"])
        if name == "shop-fairlane-worker-default":
            assert found.params["queues"] == {"critical": 4, "default": 8}
            assert (found.params["processes"], found.params["app_path"]) == (2, "shop:app")


def settings_known() -> set[str]:
    text = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    return set(re.findall(r"\"(FAIRLANE_[A-Z_]+[A-Z])\"", text))


def test_every_setting_named_is_one_that_there_is() -> None:
    known = settings_known()
    assert "FAIRLANE_GRACE_SECONDS" in known
    pages = ["deploy", "upgrades", "pgbouncer", "failover", "tuning", "releasing"]
    files = [path for path in DEPLOY.rglob("*") if path.is_file()]
    files += [ROOT / "docs" / f"{page}.md" for page in pages] + [ROOT / "CONTRIBUTING.md"]
    ours = {"FAIRLANE_TEST_ALL"}  # of the tests themselves
    for path in files:
        named = set(re.findall(r"FAIRLANE_[A-Z_]+[A-Z]", path.read_text()))
        assert named <= known | ours, path


def test_rules_and_dashboards_are_those_that_this_version_prints() -> None:
    """Print them anew: see docs/releasing.md."""
    assert (DEPLOY / "prometheus" / "fairlane-rules.yml").read_text() == rules.rules()
    for name, made in DASHBOARDS.items():
        kept = json.loads((DEPLOY / "grafana" / "dashboards" / f"{name}.json").read_text())
        assert kept == json.loads(json.dumps(made()))


def test_the_version_is_the_same_everywhere() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["appVersion"] == VERSION
    assert compose()["x-fairlane"]["image"] == f"fairlane:{VERSION}"
    assert f"fairlane:{VERSION} ." in (DEPLOY / "Dockerfile").read_text()
    assert re.search(rf"^## {re.escape(VERSION)}$", (ROOT / "CHANGELOG.md").read_text(), re.M)


# Sensible --------------------------------------------------------------------


def test_whoever_stops_a_worker_waits_longer_than_the_worker_takes() -> None:
    assert seconds(compose()["services"]["worker"]["stop_grace_period"]) > STOPPED
    (patience,) = read_unit(DEPLOY / "systemd" / "fairlane-worker@.service")["TimeoutStopSec"]
    assert int(patience) > STOPPED
    pod = pods(chart("--set=graceSeconds=300"))["shop-fairlane-worker-bulk"]
    assert pod["terminationGracePeriodSeconds"] > 300 + LAST_WORDS
    env = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
    assert env["FAIRLANE_GRACE_SECONDS"] == "300"


def test_no_pod_is_root_or_writes_to_its_image() -> None:
    for pod in pods(chart(*EVERYTHING)).values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_secrets_are_named_and_never_written() -> None:
    for document in chart(*EVERYTHING):
        assert document["kind"] != "Secret"
    for pod in pods(chart(*EVERYTHING)).values():
        for each in pod["containers"][0]["env"]:
            if each["name"] in ("FAIRLANE_DATABASE_URL", "FAIRLANE_SECRET_KEY"):
                assert each["valueFrom"]["secretKeyRef"]["name"] == "fairlane"


def test_workers_scale_by_what_could_start_and_by_the_slots_that_they_bring() -> None:
    documents = chart(*EVERYTHING)
    (scaled,) = (each for each in documents if each["kind"] == "ScaledObject")
    triggers = {each["metadata"]["url"]: each["metadata"] for each in scaled["spec"]["triggers"]}
    asked = "http://shop-fairlane-server.jobs.svc:8080/autoscale?queue="
    assert {url: each["targetValue"] for url, each in triggers.items()} == {
        f"{asked}critical": "8",
        f"{asked}default": "16",
    }
    deployments = {each["metadata"]["name"]: each for each in documents}
    assert "replicas" not in deployments["shop-fairlane-worker-default"]["spec"]
