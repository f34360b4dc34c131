"""`fairlane jobs logs`: what a job has said, and the ends of what its command printed."""

import asyncio
from uuid import UUID

import click

from fairlane.cli import params
from fairlane.cli.jobs import jobs, the_job
from fairlane.cli.render import print_json
from fairlane.cli.session import Row, Session, with_database

LINES = """
select seq, attempt, logged_at as at, level, message, fields
  from fairlane.log_line
 where job_id = $1
   and seq > $2
   and ($3::int is null or attempt = $3)
 order by seq
 limit 10000
"""

OUTPUT = """
select attempt, stream, tail, bytes, written_at
  from fairlane.output
 where job_id = $1
   and ($2::int is null or attempt = $2)
 order by attempt, stream
"""

CUT = "select max(lines) from fairlane.log_cut where job_id = $1"

ENDED = ("succeeded", "succeeded_with_errors", "failed", "canceled", "dead_letter")
EVERY = 0.5  # seconds


@jobs.command()
@params.argument("job_id", parse=params.job_id)
@click.option("--attempt", type=click.IntRange(1), metavar="N", help="Only of this attempt.")
@click.option("--follow", is_flag=True, help="Go on until the job has ended.")
@params.json_option
@with_database
async def logs(
    db: Session, /, job_id: UUID, attempt: int | None, follow: bool, as_json: bool
) -> None:
    """Show what a job has said, and the end of what its command printed."""
    if as_json and follow:
        raise click.UsageError("--json shows what there is now; leave out --follow")
    job = await the_job(db, job_id)
    if as_json:
        from fairlane.cli.shapes import page

        lines = await db.fetch(LINES, job_id, 0, attempt)
        output = await db.fetch(OUTPUT, job_id, attempt)
        shown = [{name: value for name, value in line.items() if name != "seq"} for line in lines]
        print_json({**page(shown), "dropped": await db.value(CUT, job_id) or 0, "output": output})
        return
    printed = Printed()
    if dropped := await db.value(CUT, job_id):
        click.echo(f"... {dropped:,} earlier lines are no longer kept", err=True)
    while True:
        over = job["status"] in ENDED
        printed.show(await db.fetch(LINES, job_id, printed.seq, attempt))
        printed.show_output(await db.fetch(OUTPUT, job_id, attempt))
        if over or not follow:
            break
        await asyncio.sleep(EVERY)
        job = await the_job(db, job_id)
    if not printed.any:
        click.echo("it has said nothing", err=True)


class Printed:
    """What is on the screen already."""

    def __init__(self) -> None:
        self.seq = 0
        self.any = False
        self._bytes: dict[tuple[int, str], int] = {}

    def show(self, lines: list[Row]) -> None:
        for line in lines:
            self.seq, self.any = line["seq"], True
            fields = "".join(f" {name}={value!r}" for name, value in (line["fields"] or {}).items())
            click.echo(f"{line['at']:%H:%M:%S} {line['level']:<7} {line['message']}{fields}")

    def show_output(self, output: list[Row]) -> None:
        for each in output:
            key = (each["attempt"], each["stream"])
            before = self._bytes.get(key, 0)
            if (new := each["bytes"] - before) <= 0:
                continue
            self._bytes[key] = each["bytes"]
            self.any = True
            click.echo(_news(each, before, new), nl=False)


def _news(output: Row, before: int, new: int) -> str:
    """What was printed since, under its name; what is no longer kept is counted."""
    kept: bytes = output["tail"].encode()
    lost = new - len(kept)
    head = f"--- {output['stream']}, attempt {output['attempt']}\n" if before == 0 else ""
    if lost > 0:
        head += f"... {lost} bytes before\n"
    text = kept[-new:].decode(errors="replace")
    return head + text + ("" if text.endswith("\n") else "\n")
