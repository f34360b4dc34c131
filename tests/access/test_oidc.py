"""A provider's sign-in is believed for what it proves and for nothing more."""

import base64
import json
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from access.provider import AUDIENCE, Provider, a_provider
from fairlane.access.oidc import OidcVerifier
from fairlane.access.oidc import Provider as Trusted
from fairlane.access.refusals import ProviderUnavailable, Unauthenticated
from fairlane.access.roles import Role

ACME = uuid4()


async def find_tenant(slug: str) -> UUID | None:
    return ACME if slug == "acme" else None


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    async with a_provider() as found:
        found.new_key("one")
        yield found


def believing(provider: Provider, **settings: Any) -> OidcVerifier:
    return OidcVerifier(Trusted(issuer=provider.issuer, audience=AUDIENCE, **settings), find_tenant)


@pytest.fixture
def verifier(provider: Provider) -> OidcVerifier:
    return believing(provider)


async def refused(verifier: OidcVerifier, text: str) -> str:
    with pytest.raises(Unauthenticated) as refusal:
        await verifier.verify(text)
    return str(refusal.value)


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
async def test_a_sign_in_names_its_subject_tenant_and_role(
    provider: Provider, verifier: OidcVerifier, algorithm: str
) -> None:
    provider.new_key("mine", algorithm)
    who = await verifier.verify(provider.sign("mine"))
    assert (who.subject, who.role, who.tenant, who.tenant_id) == (
        "oidc:ada",
        Role.MEMBER,
        "acme",
        ACME,
    )
    assert who.expires_at is not None
    assert 200 < who.expires_at.timestamp() - time.time() < 310


async def test_the_keys_are_fetched_once(provider: Provider, verifier: OidcVerifier) -> None:
    for _ in range(5):
        await verifier.verify(provider.sign("one"))
    assert provider.asked == ["/.well-known/openid-configuration", "/keys"]


async def test_the_address_of_the_keys_may_be_given(provider: Provider) -> None:
    await believing(provider, jwks_url=f"{provider.issuer}/keys").verify(provider.sign("one"))
    assert provider.asked == ["/keys"]


WRONG: dict[str, dict[str, Any]] = {
    "another issuer": {"iss": "https://elsewhere.example"},
    "no issuer": {"iss": None},
    "another audience": {"aud": "another-app"},
    "no audience": {"aud": None},
    "expired": {"exp": int(time.time()) - 31},
    "no end": {"exp": None},
    "not yet": {"nbf": int(time.time()) + 3600},
    "nobody": {"sub": None},
    "a number for a subject": {"sub": 7},
    "no tenant": {"tenant": None},
    "an unknown tenant": {"tenant": "globex"},
    "a list of tenants": {"tenant": ["acme"]},
    "no role": {"role": None},
    "an unknown role": {"role": "superuser"},
}


@pytest.mark.parametrize("what", WRONG)
async def test_what_is_wrong_is_refused_in_the_same_words(
    provider: Provider, verifier: OidcVerifier, what: str
) -> None:
    assert await refused(verifier, provider.sign("one", **WRONG[what])) == await refused(
        verifier, "a.b.c"
    )


async def test_clocks_may_differ_a_little(provider: Provider, verifier: OidcVerifier) -> None:
    await verifier.verify(provider.sign("one", exp=int(time.time()) - 10))
    await verifier.verify(provider.sign("one", nbf=int(time.time()) + 10))


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", None, 7, ["RS256"]])
async def test_a_sign_in_that_nobody_signed_is_refused(
    provider: Provider, verifier: OidcVerifier, algorithm: Any
) -> None:
    header = encoded({"alg": algorithm, "typ": "JWT", "kid": "one"})
    body = encoded(provider.claims())
    for signature in ("", provider.sign("one").rsplit(".", 1)[1]):
        await refused(verifier, f"{header}.{body}.{signature}")


async def test_the_public_key_is_no_shared_secret(
    provider: Provider, verifier: OidcVerifier
) -> None:
    """HS256 with the published key as its secret: anybody could sign."""
    _, private = provider.private["one"]
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    import hashlib
    import hmac

    for name, digest in (("HS256", hashlib.sha256), ("HS512", hashlib.sha512)):
        header = encoded({"alg": name, "typ": "JWT", "kid": "one"})
        signed = f"{header}.{encoded(provider.claims())}"
        mark = hmac.new(public, signed.encode(), digest).digest()
        signature = base64.urlsafe_b64encode(mark).rstrip(b"=").decode()
        await refused(verifier, f"{signed}.{signature}")


async def test_a_published_symmetric_key_signs_nothing(
    provider: Provider, verifier: OidcVerifier
) -> None:
    provider.published.append(
        {"kty": "oct", "kid": "shared", "k": encoded("x" * 32), "alg": "HS256"}
    )
    secret = base64.urlsafe_b64decode(encoded("x" * 32) + "==")
    text = jwt.encode(provider.claims(), secret, "HS256", headers={"kid": "shared"})
    await refused(verifier, text)


async def test_a_key_signs_only_as_it_says(provider: Provider, verifier: OidcVerifier) -> None:
    """The key is for RS256; the same key used for PS256 is not what was published."""
    _, private = provider.private["one"]
    text = jwt.encode(provider.claims(), private, "PS256", headers={"kid": "one"})
    await refused(verifier, text)


async def test_a_key_that_does_not_say_is_good_for_its_kind(
    provider: Provider, verifier: OidcVerifier
) -> None:
    for each in provider.published:
        del each["alg"], each["use"]
    _, private = provider.private["one"]
    for algorithm in ("RS256", "RS512", "PS256"):
        text = jwt.encode(provider.claims(), private, algorithm, headers={"kid": "one"})
        await verifier.verify(text)


async def test_a_key_of_ones_own_is_refused(provider: Provider, verifier: OidcVerifier) -> None:
    """Under a known id, under an unknown one, and carried in the header."""
    provider.new_key("forged", publish=False)
    _, forged = provider.private["forged"]
    embedded = {"jwk": provider.published[0], "jku": "http://127.0.0.1:1/keys", "x5u": "http://x"}
    for headers in ({"kid": "one"}, {"kid": "forged"}, {"kid": "one", **embedded}, {}):
        text = jwt.encode(provider.claims(), forged, "RS256", headers=headers)
        await refused(verifier, text)


async def test_a_changed_claim_breaks_the_signature(
    provider: Provider, verifier: OidcVerifier
) -> None:
    header, _, signature = provider.sign("one").split(".")
    await refused(verifier, f"{header}.{encoded(provider.claims(role='operator'))}.{signature}")


@pytest.mark.parametrize("text", ["", ".", "..", "a.b", "a.b.c.d", "\0", "é.é.é", "x" * 20_000])
async def test_what_is_no_jwt_is_refused(verifier: OidcVerifier, text: str) -> None:
    await refused(verifier, text)


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time as the keys see it."""
    now = [1000.0]
    monkeypatch.setattr("fairlane.access.jwks.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


async def test_a_new_key_is_fetched_and_an_old_one_is_gone(
    provider: Provider, verifier: OidcVerifier, moment: list[float]
) -> None:
    old = provider.sign("one")
    await verifier.verify(old)
    provider.published.clear()
    provider.new_key("two")
    moment[0] += 10
    await verifier.verify(provider.sign("two"))
    await refused(verifier, old)


async def test_made_up_key_ids_do_not_trouble_the_provider(
    provider: Provider, verifier: OidcVerifier, moment: list[float]
) -> None:
    await verifier.verify(provider.sign("one"))
    before = len(provider.asked)
    for number in range(50):
        provider.new_key(f"made-up-{number}", "EdDSA", publish=False)
        await refused(verifier, provider.sign(f"made-up-{number}"))
    assert len(provider.asked) == before
    moment[0] += 10
    for number in range(50):
        await refused(verifier, provider.sign(f"made-up-{number}"))
    assert len(provider.asked) == before + 1


async def test_a_provider_that_is_away_is_said_to_be(
    provider: Provider, verifier: OidcVerifier, moment: list[float]
) -> None:
    provider.away = True
    for _ in range(3):
        with pytest.raises(ProviderUnavailable, match="does not answer"):
            await verifier.verify(provider.sign("one"))
    assert len(provider.asked) == 1, "asked again before the cool-down was over"
    provider.away = False
    moment[0] += 10
    await verifier.verify(provider.sign("one"))


async def test_known_keys_serve_for_a_day_while_the_provider_is_away(
    provider: Provider, verifier: OidcVerifier, moment: list[float]
) -> None:
    await verifier.verify(provider.sign("one"))
    provider.away = True
    moment[0] += 86_000
    await verifier.verify(provider.sign("one"))
    await verifier.close()
    moment[0] += 1_000
    with pytest.raises(ProviderUnavailable):
        await verifier.verify(provider.sign("one"))


async def test_known_keys_are_looked_at_again_every_hour(
    provider: Provider, verifier: OidcVerifier, moment: list[float]
) -> None:
    text = provider.sign("one")
    await verifier.verify(text)
    provider.published.clear()
    moment[0] += 3_601
    await verifier.verify(text)
    await verifier.close()
    await refused(verifier, text)


@pytest.mark.parametrize(
    "discovery",
    [{"issuer": "https://elsewhere.example"}, {"jwks_uri": None}, {"jwks_uri": "file:///etc"}],
)
async def test_a_discovery_that_cannot_be_right_is_not_believed(
    provider: Provider, verifier: OidcVerifier, discovery: dict[str, Any]
) -> None:
    provider.discovery = discovery
    with pytest.raises(ProviderUnavailable):
        await verifier.verify(provider.sign("one"))


async def test_roles_and_claims_are_mapped(provider: Provider) -> None:
    verifier = believing(
        provider,
        tenant_claim="https://example.com/org",
        role_claim="realm_access.roles",
        roles={"staff": "admin", "everyone": "viewer", "root": "operator"},
    )

    async def signed(*roles: str) -> Any:
        claims = {"https://example.com/org": "acme", "realm_access": {"roles": list(roles)}}
        return await verifier.verify(provider.sign("one", tenant=None, role=None, **claims))

    assert (await signed("everyone")).role is Role.VIEWER
    assert (await signed("everyone", "staff", "x")).role is Role.ADMIN
    operator = await signed("root")
    assert (operator.role, operator.tenant) == (Role.OPERATOR, None)
    # With a map, our own names mean nothing by themselves.
    with pytest.raises(Unauthenticated):
        await signed("operator")


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1e300},
        {"exp": 10**30},
        {"sub": "ada\ud800"},
        {"sub": "ada\0"},
        {"sub": "a" * 201},
        {"sub": ""},
        {"tenant": "acme\ud800"},
        {"tenant": ["acme"]},
    ],
)
async def test_claims_that_cannot_be_written_down_are_refused(
    provider: Provider, verifier: OidcVerifier, claims: dict[str, Any]
) -> None:
    await refused(verifier, provider.sign("one", **claims))
