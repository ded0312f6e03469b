"""The revision of the schema of a database, and a revision that is not its own."""

import json
from typing import Any

import asyncpg

from app.db.postgres.schema_version import COMPATIBILITY_TABLE, REVISION_TABLE
from tests.support.postgres import execute


async def revision(url: str) -> tuple[str, str]:
    """Return the revision of the schema, and the oldest one whose programs can use it."""
    connection = await asyncpg.connect(url, timeout=60)
    try:
        return (
            await connection.fetchval(f"SELECT version_num FROM {REVISION_TABLE}"),
            await connection.fetchval(f"SELECT version_num FROM {COMPATIBILITY_TABLE}"),
        )
    finally:
        await connection.close()


async def set_revision(url: str, revision: str, *, compatible_with: str) -> None:
    """Let the schema be that of another revision."""
    await execute(
        url,
        f"UPDATE {REVISION_TABLE} SET version_num = '{revision}'; "
        f"UPDATE {COMPATIBILITY_TABLE} SET version_num = '{compatible_with}'",
    )


_COLUMNS = """
SELECT table_name, column_name, udt_name FROM information_schema.columns
WHERE table_schema = 'public' AND is_generated = 'NEVER' AND is_identity = 'NO'
  AND table_name NOT IN ('alembic_version', 'schema_revision')
ORDER BY table_name, ordinal_position
"""
# SQL of a value that the number `n` determines, by type.
_VALUES = {
    "uuid": "('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid",
    "text": "'text-' || n",
    "int2": "n % 1000",
    "int4": "n",
    "int8": "n",
    "float8": "n",
    "numeric": "n",
    "date": "'2026-01-01'::date + n::int",
    "bool": "n % 2 = 0",
    "timestamptz": "'2026-01-01Z'::timestamptz + n * interval '1 second'",
    "json": """'{"a": 1}'""",
    "jsonb": """'{"a": 1}'""",
    "bytea": "'text'::bytea",
    "_text": "ARRAY['text-' || n]",
}


async def fill(connection: Any, *, first: int, rows: int, only: str | None = None) -> None:
    """Write rows with the numbers from `first` on into every table that can have several, or only into one."""
    tables: dict[str, dict[str, str]] = {}
    for row in await connection.fetch(_COLUMNS):
        tables.setdefault(row["table_name"], {})[row["column_name"]] = _VALUES[row["udt_name"]]
    for table, columns in tables.items():
        if "singleton" not in columns and only in {None, table}:
            await connection.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) SELECT {', '.join(columns.values())} "
                f"FROM generate_series({first}, {first + rows - 1}) AS n"
            )


async def contents(connection: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every table as JSON values."""
    tables = {row["table_name"] for row in await connection.fetch(_COLUMNS)}
    found = {}
    for table in sorted(tables):
        rows = await connection.fetch(f"SELECT to_jsonb(t) AS row FROM {table} AS t")
        found[table] = [json.loads(row["row"]) for row in rows]
    return found


def restricted(rows: dict[str, list[dict[str, Any]]], to: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the rows without the tables and columns that `to` does not have."""
    return {
        table: [{name: row[name] for name in kept[0]} for row in rows[table]] if kept else []
        for table, kept in to.items()
    }
