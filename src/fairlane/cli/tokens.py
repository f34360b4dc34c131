"""`fairlane tokens`: who may come in by the API."""

import re
from datetime import datetime, timedelta

import click

from fairlane.cli import params
from fairlane.cli.render import ago, clean, print_fields, print_json, print_more, print_table
from fairlane.cli.session import Session, actor, with_database

ROLES = ["viewer", "member", "admin", "operator", "worker"]


def lifetime(text: str) -> timedelta:
    """A length of time like 90d."""
    if given := re.fullmatch(r"([0-9]{1,12})([smhd])", text):
        number, unit = int(given[1]), params.UNITS[given[2]]
        if 0 < number <= params.FARTHEST / timedelta(**{unit: 1}):
            return timedelta(**{unit: number})
    raise ValueError(f'"{text}" is not a length of time: give one like 12h, 90d')


@click.group(no_args_is_help=False)
def tokens() -> None:
    """Who may come in by the API, and as what."""


@tokens.command()
@click.option("--role", type=click.Choice(ROLES), required=True)
@click.option("--tenant", help="Whose it is; for viewer, member and admin.")
@click.option("--name", default="", help="What it is for.")
@params.option("--expires", parse=lifetime, metavar="90d", help="How long it lasts; else for good.")
@params.json_option
@with_database
async def create(
    db: Session,
    /,
    role: str,
    tenant: str | None,
    name: str,
    expires: timedelta | None,
    as_json: bool,
) -> None:
    """Make a token. Its text is shown now and never again."""
    from fairlane.access import tokens
    from fairlane.access.roles import Role

    if Role(role).is_of_tenant != (tenant is not None):
        raise click.UsageError(
            f"a token of role {role} is for all tenants; leave --tenant out"
            if tenant is not None
            else f"a {role} belongs to a tenant: give --tenant SLUG",
            click.get_current_context(),
        )
    async with db.conn.transaction():
        await db.conn.execute("select set_config('fairlane.actor', $1, true)", actor())
        made = await tokens.create(
            db.conn, Role(role), tenant=tenant, name=name, expires_in=expires
        )
    if as_json:
        print_json(made.as_dict())
        return
    click.echo(made.token)
    click.echo("keep it: it is not shown again", err=True)


@tokens.command("list")
@click.option("--tenant", help="Only this tenant's.")
@params.page_options
@params.json_option
@with_database
async def list_tokens(
    db: Session, /, tenant: str | None, limit: int, cursor: str | None, as_json: bool
) -> None:
    """List tokens, without their text."""
    from fairlane.access import tokens
    from fairlane.cli.shapes import page

    if tenant is not None:
        # Refuses an unknown one in the words of every verb.
        await db.fetch("select fairlane.tenant_named($1)", tenant)
    found = await tokens.tokens(db.conn, tenant, after=cursor, most=limit + 1)
    following = found[limit - 1].id if len(found) > limit else None
    found = found[:limit]
    if as_json:
        print_json(page([token.as_dict() for token in found], following))
        return
    now = await db.now()
    print_table(
        ["TOKEN", "ROLE", "TENANT", "NAME", "STATE", "LAST USED", "CREATED", "BY"],
        [
            [
                token.id,
                token.role.value,
                token.tenant,
                token.name,
                state(token.expires_at, token.revoked_at, now),
                ago(token.last_used_at, now) if token.last_used_at else "never",
                ago(token.created_at, now),
                token.created_by,
            ]
            for token in found
        ],
        empty="no tokens; make one with: fairlane tokens create --role operator",
    )
    print_more(following)


def state(expires_at: datetime | None, revoked_at: datetime | None, now: datetime) -> str:
    if revoked_at is not None:
        return "revoked"
    if expires_at is None:
        return "good"
    return "expired" if expires_at <= now else f"ends {ago(expires_at, now)}"


@tokens.command()
@click.argument("token_id", metavar="ID")
@params.json_option
@with_database
async def revoke(db: Session, /, token_id: str, as_json: bool) -> None:
    """End a token now."""
    from fairlane.access import secret, tokens

    # Who has only its text means the same token; the text itself is repeated nowhere.
    given = secret.read(token_id)
    async with db.conn.transaction():
        await db.conn.execute("select set_config('fairlane.actor', $1, true)", actor())
        ended = await tokens.revoke(db.conn, token_id if given is None else given.id)
    if as_json:
        print_json(ended.as_dict())
        return
    print_fields({name: clean(value) for name, value in ended.as_dict().items() if value})
