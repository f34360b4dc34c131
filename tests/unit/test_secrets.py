"""Secrets are named by definitions, held by workers, and told by nobody."""

import os
from pathlib import Path

import pytest

from fairlane.redact.known import KNOWN
from fairlane.secrets import SecretMissing, Secrets, fault_in


@pytest.mark.parametrize("name", ["api-token", "api.token", "API_TOKEN", "api_token"])
def test_a_secret_comes_from_the_environment(name: str) -> None:
    assert Secrets({"FAIRLANE_SECRET_API_TOKEN": "s3"}).lookup(name) == "s3"


def test_else_from_a_file_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "api.token").write_text("from a file\r\n")
    (tmp_path / "other").write_text("two\nlines\n\n")
    secrets = Secrets({"FAIRLANE_SECRETS_DIR": str(tmp_path), "FAIRLANE_SECRET_ONE": "1"})

    assert secrets.lookup("api.token") == "from a file"
    assert secrets.lookup("other") == "two\nlines\n"
    assert secrets.lookup("one") == "1"


def test_a_file_that_has_changed_is_read_anew(tmp_path: Path) -> None:
    secrets = Secrets({"FAIRLANE_SECRETS_DIR": str(tmp_path)})
    (tmp_path / "token").write_text("old")
    assert secrets.lookup("token") == "old"

    (tmp_path / "token").write_text("new")

    assert secrets.lookup("token") == "new"


def test_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SecretMissing, match=r'secret "a\.b-c" .* set FAIRLANE_SECRET_A_B_C'):
        Secrets({}).lookup("a.b-c")
    with pytest.raises(SecretMissing, match='secret "empty" is not known'):
        Secrets({"FAIRLANE_SECRET_EMPTY": ""}).lookup("empty")


def test_the_key_of_the_installation_is_no_secret_of_a_definition() -> None:
    secrets = Secrets({"FAIRLANE_SECRET_KEY": "the master key"})

    for name in ("key", "KEY", "Key"):
        with pytest.raises(SecretMissing, match="the installation's own") as refused:
            secrets.lookup(name)
        assert "the master key" not in str(refused.value)
        assert fault_in(name) is not None


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", ".", "..", "-a", "a b", "ä", "a\0", "a\n", "x" * 129]
)
def test_a_name_leads_nowhere_else(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_text("outside")
    inside = tmp_path / "inside"
    inside.mkdir()

    with pytest.raises(SecretMissing):
        Secrets({"FAIRLANE_SECRETS_DIR": str(inside)}).lookup(name)


def test_what_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    secrets = Secrets({"FAIRLANE_SECRETS_DIR": str(tmp_path)})
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_bytes(b"x" * 65_537)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever

    for name in ("binary", "large", "folder", "pipe"):
        with pytest.raises(SecretMissing, match=f'secret "{name}"'):
            secrets.lookup(name)


def test_what_was_looked_up_is_known_again_in_a_text() -> None:
    secrets = Secrets({"FAIRLANE_SECRET_A": "a-9", "FAIRLANE_SECRET_B": "a-9-long"})
    assert secrets.scrub("a-9 a-9-long") == "a-9 a-9-long"

    secrets.lookup("a")
    secrets.lookup("b")

    assert secrets.seen == {"a-9", "a-9-long"}
    assert secrets.scrub("a-9, a-9-long!") == "[redacted], [redacted]!"
    assert "a-9" not in repr(secrets)


def test_the_whole_process_keeps_it_out_of_what_it_writes() -> None:
    Secrets({"FAIRLANE_SECRET_A": "a-long-secret-815"}).lookup("a")

    assert KNOWN.hide("token a-long-secret-815") == "token [redacted]"
