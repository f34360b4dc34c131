"""promtool reads the rules and fires them on what they are for."""

import subprocess
from pathlib import Path

import pytest
import yaml

from fairlane.metrics.rules import RULES, rules
from support.programs import needed

Q = '{queue="default", instance="a"}'
T = '{tenant="acme", queue="default", instance="a"}'

# What each rule sees (`a+bxN`: from a, b more a minute), and after how long it must fire.
FAULTS: dict[str, tuple[dict[str, str], str]] = {
    "FairlaneQueueBacklog": ({f"fairlane_queue_depth{Q}": "1001x40"}, "16m"),
    "FairlaneStartLatency": (
        {
            'fairlane_queue_latency_seconds_bucket{queue="default", le="60"}': "0x60",
            'fairlane_queue_latency_seconds_bucket{queue="default", le="300"}': "0+60x60",
            'fairlane_queue_latency_seconds_bucket{queue="default", le="+Inf"}': "0+60x60",
        },
        "25m",
    ),
    "FairlaneOldestDue": ({f"fairlane_queue_oldest_due_seconds{Q}": "901x40"}, "6m"),
    "FairlaneDeadLetters": ({"fairlane_dlq_depth": "51x40"}, "1m"),
    "FairlaneDeadLettersGrowing": (
        {'fairlane_jobs_completed_total{queue="default", status="dead_letter"}': "0+1x90"},
        "70m",
    ),
    "FairlaneFailureRate": (
        {
            f"fairlane_jobs_retried_total{Q}": "0+60x90",
            f"fairlane_jobs_started_total{Q}": "0+90x90",
        },
        "40m",
    ),
    "FairlaneStuckJobs": ({f"fairlane_jobs_stuck_total{Q}": "0 0 1x40"}, "3m"),
    "FairlaneTenantAtLimit": ({f"fairlane_tenant_over_backlog_total{T}": "0 0 5x40"}, "3m"),
    "FairlaneLeasesLost": ({f"fairlane_leases_lost_total{Q}": "0 0 1x40"}, "3m"),
    "FairlaneWorkersLost": ({'fairlane_workers{state="lost"}': "0 0 1x40"}, "3m"),
    "FairlaneNoWorker": (
        {f"fairlane_queue_runnable{Q}": "3x40", f"fairlane_queue_workers{Q}": "0x40"},
        "6m",
    ),
    "FairlaneNotMoving": (
        {
            f"fairlane_queue_runnable{Q}": "3x40",
            f"fairlane_jobs_started_total{Q}": "7x40",
            f"fairlane_queue_oldest_due_seconds{Q}": "601x40",
        },
        "12m",
    ),
    "FairlaneTenantStarved": (
        {
            f"fairlane_tenant_oldest_due_seconds{T}": "301x40",
            f"fairlane_jobs_started_total{Q}": "0+5x40",
        },
        "10m",
    ),
    "FairlaneUnfair": ({f"fairlane_fairness_index{Q}": "0.4x40"}, "16m"),
    "FairlaneSchedulerLate": ({"fairlane_scheduler_lag_seconds": "61x40"}, "3m"),
    "FairlaneHouseNotKept": ({"fairlane_house_kept": "0x40"}, "3m"),
    "FairlanePromiseBroken": (
        {'fairlane_audit_violations_total{check="gates"}': "0 0 1x40"},
        "3m",
    ),
    "FairlaneNotReady": ({'fairlane_ready{instance="a"}': "0x40"}, "2m"),
    "FairlaneAbsentQueueDepth": ({}, "6m"),
    "FairlaneAbsentDlqDepth": ({}, "6m"),
    "FairlaneAbsentQueueOldestDueSeconds": ({}, "6m"),
    "FairlaneAbsentWorkers": ({}, "6m"),
    "FairlaneAbsentSchedulerLagSeconds": ({}, "6m"),
}

# A day on which nothing is wrong: none of the rules may fire.
WELL = {
    f"fairlane_queue_depth{Q}": "1000x90",
    f"fairlane_queue_oldest_due_seconds{Q}": "20x90",
    f"fairlane_queue_runnable{Q}": "10x90",
    f"fairlane_queue_workers{Q}": "2x90",
    f"fairlane_jobs_started_total{Q}": "0+60x90",
    f"fairlane_jobs_retried_total{Q}": "0+3x90",
    f"fairlane_jobs_stuck_total{Q}": "1x90",
    f"fairlane_leases_lost_total{Q}": "1x90",
    f"fairlane_tenant_oldest_due_seconds{T}": "20x90",
    f"fairlane_tenant_over_backlog_total{T}": "9x90",
    f"fairlane_fairness_index{Q}": "0.97x90",
    "fairlane_dlq_depth": "50x90",
    'fairlane_workers{state="lost"}': "1x90",
    "fairlane_scheduler_lag_seconds": "1x90",
    "fairlane_scheduler_up": "1x90",
    "fairlane_house_kept": "1x90",
    'fairlane_ready{instance="a"}': "1x90",
    'fairlane_audit_violations_total{check="gates"}': "0x90",
}


def test_every_rule_has_its_fault() -> None:
    assert set(FAULTS) == {rule.name for rule in RULES}


def test_promtool_accepts_the_rules_and_each_fires_on_its_fault_and_on_nothing_else(
    tmp_path: Path,
) -> None:
    (tmp_path / "rules.yml").write_text(rules())
    promtool("check", "rules", "--lint=all", "--lint-fatal", "rules.yml", folder=tmp_path)

    cases = [_case(series, at, {name: 1}) for name, (series, at) in FAULTS.items()]
    cases.append(_case(WELL, "80m", {rule.name: 0 for rule in RULES}))
    document = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": cases}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(document))
    promtool("test", "rules", "tests.yml", folder=tmp_path)


def _case(series: dict[str, str], at: str, firing: dict[str, int]) -> dict[str, object]:
    """How often each alert fires then: that it does is itself a series, ALERTS."""
    return {
        "interval": "1m",
        "input_series": [{"series": each, "values": values} for each, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)',
                "eval_time": at,
                "exp_samples": [{"labels": "{}", "value": times}],
            }
            for name, times in firing.items()
        ],
    }


def promtool(*arguments: str, folder: Path) -> None:
    program = needed("promtool", "prometheus")
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.fail(done.stdout + done.stderr)
