"""Statements follow from the tables and the records: a new column changes no statement."""

import asyncio
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import asyncpg
import pytest
from sqlalchemy import ARRAY, Column, Integer, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from app.db.postgres.columns import Columns, columns, record_columns, shared_columns
from app.db.postgres.engine import Database
from app.db.postgres.errors import NotStorable
from tests.db.postgres.made_up_column import COLUMN, OTHER_COLUMN

ROOT = Path(__file__).parents[3]
TABLES = {
    COLUMN: ("jobs", "conditions", "status_history", "scale_records", "replicas", "attempts", "samples"),
    OTHER_COLUMN: ("jobs", "replicas"),
}
# Where each of these tables is defined. The first two share the columns of an attempt.
MODELS = {
    "app/models/base.py": {"attempt_fields": COLUMN},
    "app/models/replicas.py": {"replicas": OTHER_COLUMN},
    "app/models/samples.py": {"samples": COLUMN},
    "app/models/jobs.py": {"conditions": COLUMN, "status_history": COLUMN, "scale_records": COLUMN, "jobs": COLUMN},
}
RECORDS = {
    "app/db/jobs/rows.py": {"JobRow": COLUMN},
    "app/db/jobs/controller.py": {"StoredJob": COLUMN},
    "app/domain/resize.py": {"ScaleChange": COLUMN},
    "app/db/samples/rows.py": {"SampleRow": COLUMN},
    "app/domain/status/records.py": {
        "Attempt": COLUMN,
        "Condition": COLUMN,
        "HistoryEntry": COLUMN,
        "ScaleRecord": COLUMN,
        "JobStatus": OTHER_COLUMN,
        "Replica": OTHER_COLUMN,
    },
}


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True, kw_only=True)
class RedactionCursor:
    y: int
    notes: dict[str, str] | None
    elsewhere: str = ""


points = Table("points", MetaData(), Column("x", Integer), Column("y", Integer), Column("notes", JSONB))


def test_the_columns_of_a_record_are_in_the_order_of_the_table() -> None:
    found = columns(points, "x") + record_columns(points, RedactionCursor, elsewhere=["elsewhere"])
    assert str(found) == "x, y, notes"
    assert found.of("p") == "p.x, p.y, p.notes"
    assert found.without("x").assignments("w") == "y = w.y, notes = w.notes"
    assert shared_columns(points, RedactionCursor).names == ("y", "notes")
    assert found.rows("w", first=3, number="n") == (
        "(SELECT x, y, notes::jsonb AS notes, n "
        "FROM unnest((SELECT $3::integer[])::integer[], $4::integer[], $5::text[]) "
        "WITH ORDINALITY AS a(x, y, notes, n)) AS w"
    )


def test_json_is_sent_as_text_and_null_as_null() -> None:
    found = shared_columns(points, RedactionCursor)
    assert found.values(RedactionCursor(y=1, notes={"a": "b"})) == (1, '{"a":"b"}')
    assert found.values(RedactionCursor(y=1, notes=None)) == (1, None)
    assert found.arguments([(1, "{}"), (2, None)]) == [[1, 2], ["{}", None]]
    assert found.arguments([(1, None), (2, "{}")]) == [[1, 2], [None, "{}"]]
    assert columns(points, "notes").values(RedactionCursor(y=1, notes={})) == ("{}",)
    with pytest.raises(NotStorable):
        found.values(RedactionCursor(y=1, notes={"a": "\ud800"}))


async def test_a_column_of_nulls_is_an_empty_array(db: Database) -> None:
    found = columns(points, "x", "y", "notes")
    rows: list[tuple[int | None, int | None, str | None]] = [(None, 1, None), (None, 2, None)]
    assert found.arguments(rows) == [[None, None], [1, 2], []]
    async with db.read() as connection:
        read = await connection.fetch(f"SELECT * FROM {found.rows('w')}", *found.arguments(rows))
    assert [tuple(row) for row in read] == rows


def test_a_field_without_a_column_is_refused_when_the_statement_is_built() -> None:
    with pytest.raises(ValueError, match="no column for elsewhere of RedactionCursor"):
        record_columns(points, RedactionCursor)
    with pytest.raises(ValueError, match="listed twice"):
        columns(points, "x") + record_columns(points, Point)
    with pytest.raises(TypeError, match="flatten"):
        Columns([Column("names", ARRAY(Text))]).rows("w")


def test_no_statement_has_so_many_parameters_that_they_should_be_derived() -> None:
    by_hand = {
        f"{path.relative_to(ROOT)}: {found}"
        for path in (ROOT / "app" / "db").rglob("*.py")
        for found in re.findall(r"\$\d\d+", path.read_text())
    }
    assert by_hand == set()


def insert(path: Path, after: str, line: str) -> None:
    """Insert a line after the only match of the pattern."""
    changed, count = re.subn(after, lambda match: match.group() + line, path.read_text(), flags=re.DOTALL)
    assert count == 1, f"{count} matches of {after} in {path}"
    path.write_text(changed)


def copy_with_made_up_columns(copy: Path) -> None:
    """Copy `app`, and add the columns to the models and the fields to the records, and nothing else."""
    shutil.copytree(ROOT / "app", copy / "app", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "migrations", copy / "migrations", ignore=shutil.ignore_patterns("__pycache__"))
    for file, tables in MODELS.items():
        for table, column in tables.items():
            if table == "attempt_fields":
                start, indent = r"def attempt_fields\(\).*?return \(\n", 8
            else:
                start, indent = rf'Table\(\n    "{table}",\n    metadata,\n', 4
            insert(copy / file, start, f'{" " * indent}text_column("{column}", nullable=True),\n')
    insert(
        copy / "app/models/jobs.py", r'"jobs",\n    metadata,\n', f'    text_column("{OTHER_COLUMN}", nullable=True),\n'
    )
    for file, records in RECORDS.items():
        for record, column in records.items():
            first_field = rf"\nclass {record}\b[^\n]*:\n(?:    \"\"\".*?\"\"\"\n\n)?(?=    \w+: )"
            insert(copy / file, first_field, f"    {column}: str | None = None\n")


async def test_a_new_column_needs_only_the_model_and_the_records(database_url: str, tmp_path: Path) -> None:
    """The migration is played by ALTER TABLE, and the edits by a copy of `app`."""
    copy_with_made_up_columns(tmp_path)
    connection = await asyncpg.connect(database_url, timeout=60)
    for column, tables in TABLES.items():
        for table in tables:
            await connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} text")
    await connection.close()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.db.postgres.made_up_column",
        database_url,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await asyncio.wait_for(process.communicate(), 240)
    assert process.returncode == 0, errors.decode()
