"""The settings of the sign-in: taken, or refused with what was expected."""

from pathlib import Path

import pytest

from fairlane import config
from fairlane.access.oidc import Provider
from fairlane.errors import ConfigError

BASE = {
    "FAIRLANE_OIDC_ISSUER": "https://id.example.com/realms/x",
    "FAIRLANE_OIDC_AUDIENCE": "fairlane",
}


def test_without_an_issuer_nobody_signs_in(tmp_path: Path) -> None:
    assert Provider.of(config.load({}, tmp_path)) is None


def test_everything_may_be_set_by_the_environment(tmp_path: Path) -> None:
    environ = {
        **BASE,
        "FAIRLANE_OIDC_JWKS_URL": "https://id.example.com/keys",
        "FAIRLANE_OIDC_TENANT_CLAIM": "org",
        "FAIRLANE_OIDC_ROLE_CLAIM": "groups",
        "FAIRLANE_OIDC_ROLES": "staff=admin, everyone=viewer",
    }
    assert Provider.of(config.load(environ, tmp_path)) == Provider(
        issuer="https://id.example.com/realms/x",
        audience="fairlane",
        jwks_url="https://id.example.com/keys",
        tenant_claim="org",
        role_claim="groups",
        roles={"staff": "admin", "everyone": "viewer"},
    )


def test_and_by_the_file(tmp_path: Path) -> None:
    (tmp_path / "fairlane.toml").write_text(
        'oidc_issuer = "http://localhost:9000"\noidc_audience = "a"\n'
        'oidc_roles = {staff = "operator"}\n'
    )
    found = Provider.of(config.load({}, tmp_path))
    assert found is not None
    assert (found.tenant_claim, found.role_claim) == ("tenant", "role")
    assert found.roles == {"staff": "operator"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FAIRLANE_OIDC_ISSUER", "id.example.com"),
        ("FAIRLANE_OIDC_ISSUER", "http://id.example.com"),
        ("FAIRLANE_OIDC_JWKS_URL", "file:///etc/keys"),
        ("FAIRLANE_OIDC_ROLES", "staff"),
        ("FAIRLANE_OIDC_ROLES", "staff=boss"),
        ("FAIRLANE_OIDC_ROLES", "=admin"),
    ],
)
def test_a_wrong_value_is_refused_by_name(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        config.load({**BASE, name: value}, tmp_path)


def test_an_issuer_without_an_audience_is_refused(tmp_path: Path) -> None:
    """Any other application of the same provider would open this one."""
    with pytest.raises(ConfigError, match="FAIRLANE_OIDC_AUDIENCE"):
        config.load({"FAIRLANE_OIDC_ISSUER": BASE["FAIRLANE_OIDC_ISSUER"]}, tmp_path)
