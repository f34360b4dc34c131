"""`fairlane alerts`: the same as the API, for people and for scripts."""

from cli.calling import Call, Floor


def fire(floor: Floor) -> str:
    return str(
        floor.one(
            "insert into fairlane.alert (rule, subject, state, severity, value, threshold, since, "
            "fired_at) values ('dead_letters', 'dead letters', 'firing', 'warning', 51, 50, now(), "
            "now()) returning id"
        )
    )


def test_an_alert_is_seen_acknowledged_and_silenced(fairlane: Call, floor: Floor) -> None:
    assert fairlane("alerts", "list").err == "no alerts\n"
    alert = fire(floor)
    assert "dead letters wait for a person (51 jobs" in fairlane("alerts", "list").out
    shown = fairlane("alerts", "list", "--state", "firing", "--json").json["items"]
    assert [each["id"] for each in shown] == [alert]

    assert fairlane("alerts", "silence", "--until", "+2h", "--reason", "known").status == 0
    (silence,) = fairlane("alerts", "silences", "--json").json["items"]
    assert (silence["rule"], silence["reason"]) == ("*", "known")
    assert fairlane("alerts", "list", "--json").json["items"][0]["state"] == "silenced"
    assert fairlane("alerts", "unsilence", silence["id"]).status == 0

    seen = fairlane("alerts", "ack", alert, "--note", "on it", "--json").json
    assert (seen["state"], seen["note"]) == ("acknowledged", "on it")
    assert seen["acknowledged_by"].startswith("cli:")


def test_rules_and_channels_are_set_and_tested(fairlane: Call, floor: Floor) -> None:
    changed = fairlane("alerts", "set", "queue_backlog", "--threshold", "500", "--json").json
    assert changed["threshold"] == 500
    rules = {each["name"]: each for each in fairlane("alerts", "rules", "--json").json["items"]}
    assert rules["queue_backlog"]["threshold"] == 500
    assert "dead_letters" in fairlane("alerts", "rules").out

    made = fairlane("alerts", "channel", "ops", "--url", "https://x.example/h", "--json").json
    assert (made["kind"], made["settings"]["url"]) == ("webhook", "https://x.example/h")
    fairlane("alerts", "channel", "post", "--to", "a@b.example", "--to", "c@d.example")
    assert "post" in fairlane("alerts", "channels").out
    sent = fairlane("alerts", "test", "queue_backlog", "--json").json["items"]
    assert [each["channel"] for each in sent] == ["log", "ops", "post"]
    assert not any(each["error"] for each in sent)
    off = fairlane("alerts", "channel", "post", "--off", "--json").json
    assert (off["is_enabled"], off["settings"]) == (False, {"to": ["a@b.example", "c@d.example"]})


def test_a_wrong_call_says_what_next(fairlane: Call) -> None:
    unknown = fairlane("alerts", "set", "nothing", "--threshold", "1")
    assert unknown.status == 1
    assert unknown.line == 'there is no rule "nothing"; see: fairlane alerts rules'
    assert fairlane("alerts", "silence", "--reason", "x").status == 2
    assert fairlane("alerts", "ack", "x").status == 2
    bad = fairlane("alerts", "channel", "post", "--to", "nobody")
    assert bad.line == 'a mail channel has "to", a list of addresses like ops@example.com'
