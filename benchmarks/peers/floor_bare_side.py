"""The floor that keeps nothing: what is done is deleted, as PgQueuer does."""

from benchmarks.peers.floor_side import FloorSide
from benchmarks.peers.side import Side


class BareFloorSide(FloorSide):
    finish = "delete from floor_job where id = any ($1::bigint[])"


def side() -> Side:
    return BareFloorSide()
