"""A table as a file: CSV that a spreadsheet opens as text, never as a formula."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from starlette.responses import Response

# What a spreadsheet takes for the beginning of a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_of(name: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> Response:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(heads)
    writer.writerows([_cell(each) for each in row] for row in rows)
    return file_of(name, text.getvalue())


def file_of(name: str, text: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/csv", headers=headers)


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
