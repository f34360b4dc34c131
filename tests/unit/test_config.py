"""Settings: where they come from and what is refused."""

from pathlib import Path

import pytest

from fairlane import config
from fairlane.config import Settings
from fairlane.errors import ConfigError


def load(directory: Path, toml: str = "", **environ: str) -> Settings:
    if toml:
        (directory / "fairlane.toml").write_text(toml)
    return config.load(environ, directory)


def test_nothing_needs_to_be_set(tmp_path: Path) -> None:
    settings = load(tmp_path)

    assert settings.database_url is None
    assert settings.home == tmp_path / ".fairlane"
    assert settings.log_format == "console"
    assert settings.log_level == "info"
    assert settings.payload_limit == 262_144
    assert settings.lease_seconds == 15
    assert settings.poll_seconds == 1
    assert set(settings.sources.values()) == {"default"}


def test_the_environment_comes_before_the_file_and_the_file_before_defaults(tmp_path: Path) -> None:
    settings = load(
        tmp_path, 'lease_seconds = 30\nlog_format = "json"', FAIRLANE_LEASE_SECONDS="45"
    )

    assert (settings.lease_seconds, settings.sources["lease_seconds"]) == (
        45,
        "FAIRLANE_LEASE_SECONDS",
    )
    assert (settings.log_format, settings.sources["log_format"]) == ("json", "fairlane.toml")
    assert settings.sources["poll_seconds"] == "default"


def test_our_own_database_variable_comes_before_the_common_one(tmp_path: Path) -> None:
    common = "postgresql://localhost/common"
    ours = "postgresql://localhost/ours"

    assert load(tmp_path, DATABASE_URL=common).database_url == common
    both = load(tmp_path, DATABASE_URL=common, FAIRLANE_DATABASE_URL=ours)
    assert (both.database_url, both.sources["database_url"]) == (ours, "FAIRLANE_DATABASE_URL")


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    assert load(tmp_path, FAIRLANE_DATABASE_URL="").database_url is None


def test_a_url_may_name_a_primary_and_its_standby(tmp_path: Path) -> None:
    url = "postgresql://u:p@db1:5432,db2:5433/app?target_session_attrs=primary"
    assert load(tmp_path, FAIRLANE_DATABASE_URL=url).database_url == url


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg", "POSTGRESQL"])
def test_every_spelling_of_a_postgresql_url_is_accepted(tmp_path: Path, scheme: str) -> None:
    settings = load(tmp_path, DATABASE_URL=f"{scheme}://u:p%40ss@db:5433/app?sslmode=require")

    assert settings.database_url == "postgresql://u:p%40ss@db:5433/app?sslmode=require"


@pytest.mark.parametrize(
    "url",
    [
        "mysql://root:s3cret@db/app",
        "u:s3cret@db/app",
        "postgresql://u:s3cret@db:port/app",
        "postgresql://u:s3cret@db1:5432,db2:port/app",
        "s3cret",
        "u:s3cret@postgresql://db/app",
    ],
)
def test_a_wrong_url_is_refused_by_name_and_its_password_stays_unseen(
    tmp_path: Path, url: str
) -> None:
    with pytest.raises(
        ConfigError, match="FAIRLANE_DATABASE_URL must be a URL like postgresql://"
    ) as refused:
        load(tmp_path, FAIRLANE_DATABASE_URL=url)

    assert "s3cret" not in str(refused.value)


def test_secrets_do_not_show_when_settings_are_printed(tmp_path: Path) -> None:
    settings = load(
        tmp_path, DATABASE_URL="postgresql://u:s3cret@db/app", FAIRLANE_SECRET_KEY="s3cret"
    )

    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("LOG_FORMAT", "xml", "FAIRLANE_LOG_FORMAT must be console or json, not 'xml'"),
        ("LOG_LEVEL", "loud", "FAIRLANE_LOG_LEVEL must be debug or info or warning or error"),
        ("PAYLOAD_LIMIT", "1.5", "FAIRLANE_PAYLOAD_LIMIT must be a number of bytes"),
        ("PAYLOAD_LIMIT", "0", "FAIRLANE_PAYLOAD_LIMIT must be a number of bytes"),
        ("LEASE_SECONDS", "soon", "FAIRLANE_LEASE_SECONDS must be a number of seconds"),
        ("LEASE_SECONDS", "nan", "FAIRLANE_LEASE_SECONDS must be a number of seconds"),
        ("POLL_SECONDS", "-1", "FAIRLANE_POLL_SECONDS must be a number of seconds"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name_and_what_was_expected(
    tmp_path: Path, name: str, value: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, **{f"FAIRLANE_{name}": value})


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("lease = 3", "lease in fairlane.toml must be one of database_url, home"),
        ("lease_seconds = true", "lease_seconds in fairlane.toml must be a number of seconds"),
        ("payload_limit = 1.5", "payload_limit in fairlane.toml must be a number of bytes"),
        ("home = 1", "home in fairlane.toml must be a text"),
        ("home = ", "fairlane.toml must be valid TOML"),
    ],
)
def test_the_file_is_read_strictly(tmp_path: Path, toml: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(tmp_path, toml)


def test_a_variable_we_do_not_know_may_be_someone_elses(tmp_path: Path) -> None:
    assert load(tmp_path, FAIRLANE_TEAM="blue") == load(tmp_path)


def test_a_relative_home_is_in_the_working_directory(tmp_path: Path) -> None:
    assert load(tmp_path, FAIRLANE_HOME="data").home == tmp_path / "data"
    assert load(tmp_path, FAIRLANE_HOME="/srv/fairlane").home == Path("/srv/fairlane")
