"""Who may read /metrics and /autoscale."""

import dataclasses
from typing import Any

import httpx2
import pytest

from api.world import HOST, World

HERE = {"Host": "localhost:8080"}
PATHS = ("/metrics", "/autoscale?queue=default")


async def ask(world: World, path: str, client: str = "127.0.0.1", **headers: str) -> int:
    transport = httpx2.ASGITransport(world.app, client=(client, 1234))
    async with httpx2.AsyncClient(transport=transport, base_url=HOST) as http:
        answer = await http.get(path, headers={**HERE, **headers})
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code


@pytest.mark.parametrize("path", PATHS)
async def test_this_machine_needs_no_token(world: World, path: str) -> None:
    assert await ask(world, path) == 200
    assert await ask(world, path, "::1", Host="[::1]:8080") == 200


@pytest.mark.parametrize("path", PATHS)
async def test_others_show_an_operators_token(world: World, path: str) -> None:
    assert await ask(world, path, "10.0.0.7") == 401
    for role, tenant, expected in (
        ("operator", None, 200),
        ("worker", None, 403),
        ("admin", "acme", 403),
    ):
        token = (await world.caller(role, tenant)).token
        bearer = f"Bearer {token}"
        assert await ask(world, path, "10.0.0.7", Authorization=bearer) == expected
        assert await ask(world, path, Authorization=bearer) == expected


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [{"X-Forwarded-For": "10.0.0.7"}, {"Forwarded": "for=10.0.0.7"}, {"Host": "evil.example"}],
    ids=lambda headers: next(iter(headers)),
)
async def test_what_a_proxy_or_a_page_passes_on_is_not_from_this_machine(
    world: World, path: str, headers: dict[str, str]
) -> None:
    assert await ask(world, path, **headers) == 401


@pytest.mark.parametrize("path", PATHS)
async def test_a_token_of_their_own_is_then_needed_everywhere(world: World, path: str) -> None:
    service = world.app.state.fairlane
    object.__setattr__(service.settings, "metrics_token", "s3cret")
    assert await ask(world, path) == 401
    assert await ask(world, path, "10.0.0.7", Authorization="Bearer s3cret") == 200
    assert await ask(world, path, "10.0.0.7", Authorization="Bearer s3crets") == 401


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "told", [{"base_url": "https://jobs.example"}, {"trusted_proxies": ("127.0.0.1/32",)}]
)
async def test_behind_a_proxy_nobody_is_from_this_machine(
    world: World, path: str, told: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy on the same machine that adds no header made everybody look like this machine: they
    read the tenants' names and figures without a token. Whoever sets up a proxy says so to the
    pages, and by that also here."""
    service = world.app.state.fairlane
    monkeypatch.setattr(service, "settings", dataclasses.replace(service.settings, **told))
    assert await ask(world, path) == 401
    token = (await world.caller("operator")).token
    assert await ask(world, path, Authorization=f"Bearer {token}") == 200


@pytest.mark.parametrize("path", PATHS)
async def test_a_proxy_without_any_settings_is_not_this_machine(world: World, path: str) -> None:
    """nginx passes requests on as HTTP/1.0, with the host it was told and no word of the caller."""

    async def of_old(scope: Any, receive: Any, send: Any) -> None:
        await world.app({**scope, "http_version": "1.0"}, receive, send)

    transport = httpx2.ASGITransport(of_old, client=("127.0.0.1", 1234))
    async with httpx2.AsyncClient(transport=transport, base_url=HOST) as http:
        assert (await http.get(path, headers=HERE)).status_code == 401
