"""Compare the schema of a database with the one that this version needs.

Every process does this when it starts. So this module reads the migrations as text: the import of Alembic would take a
tenth of the time of a start.

A process also starts on a newer schema if all migrations that it does not know are compatible with it. The database
says so: `COMPATIBILITY_TABLE` holds the oldest revision whose programs can use the present schema.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import asyncpg

from app.bundled import bundled_directory
from app.db.postgres.engine import Connection, Database

REVISION_TABLE: Final = "schema_revision"
"""The table with the revision of the schema."""
COMPATIBILITY_TABLE: Final = "alembic_version"
"""The table with the oldest revision whose programs can use the schema.

Programs up to revision 0023 start only if this table has their own revision. So they start on every later schema that
is compatible with them, as newer programs do.
"""

_CONSTANT: Final = re.compile(
    r"""^(revision|down_revision|compatible_with|blocks_writes|undoing_loses)\b[^=\n]*=\s*(["'])(.*)\2$""", re.MULTILINE
)
_SUBJECT: Final = re.compile(r'\A"""(.*?)(?:"""|\n)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What an operator must know of a migration before it runs.

    `compatible_with` is the oldest revision whose programs can use the schema after it. `blocks_writes` says of which
    tables writes wait, and for how long; `undoing_loses` what its downgrade deletes. Both begin with "no" if nothing.
    """

    revision: str
    follows: str | None
    subject: str
    compatible_with: str
    blocks_writes: str
    undoing_loses: str


@dataclass(frozen=True, slots=True)
class Revisions:
    """The revisions of a set of migrations. `heads` are those that no other revision follows."""

    known: frozenset[str]
    heads: frozenset[str]


def revisions() -> Revisions:
    """Return the revisions of this version."""
    return revisions_of(read_migrations())


def revisions_of(migrations: Mapping[str, Migration]) -> Revisions:
    followed = {migration.follows for migration in migrations.values()}
    return Revisions(known=frozenset(migrations), heads=frozenset(migrations) - followed)


def read_migrations() -> dict[str, Migration]:
    """Return the migrations of this version by revision."""
    files = bundled_directory("migrations").joinpath("versions").iterdir()
    return migrations_in(file.read_text(encoding="utf-8") for file in files if file.name.endswith(".py"))


def migrations_in(scripts: Iterable[str]) -> dict[str, Migration]:
    """Read migrations from their text. One that does not say so is compatible only with programs that know it."""
    found = {}
    for script in scripts:
        constants = {name: value for name, _, value in _CONSTANT.findall(script)}
        if revision := constants.get("revision"):
            subject = _SUBJECT.match(script)
            found[revision] = Migration(
                revision=revision,
                follows=constants.get("down_revision"),
                subject=subject[1] if subject else "",
                compatible_with=constants.get("compatible_with", revision),
                blocks_writes=constants.get("blocks_writes", ""),
                undoing_loses=constants.get("undoing_loses", ""),
            )
    return found


def path_to(migrations: Mapping[str, Migration], revision: str | None) -> list[Migration]:
    """Return the migrations up to a revision in their order; none for a revision of another version."""
    path = []
    while revision is not None and revision in migrations:
        path.append(migrations[revision])
        revision = path[-1].follows
    return path[::-1]


async def check_database(url: str) -> list[str]:
    """Open a connection, and return why this version cannot use the database; nothing if it can.

    Raises:
        DatabaseUnavailable: the server does not answer.
    """
    db = await Database.open(url, pool_size=1)
    try:
        async with db.read() as connection:
            return await check(connection)
    finally:
        await db.close()


async def check(connection: Connection) -> list[str]:
    """Return why this version cannot use the database; nothing if it can."""
    migrations = read_migrations()
    expected = revisions_of(migrations)
    present = await present_revisions(connection, migrations)
    if present == expected.heads:
        return []
    if unknown := present - expected.known:
        compatible = await _stored(connection, COMPATIBILITY_TABLE)
        return [] if is_compatible(compatible, expected.known) else [newer(unknown, compatible)]
    has = ", ".join(sorted(present)) or "no schema of jobgate"
    return [f"the database has {has} and this version needs {', '.join(sorted(expected.heads))}: run `jobgate migrate`"]


def is_compatible(compatible: Collection[str], known: Collection[str]) -> bool:
    """Return whether a program that knows these revisions can use a newer schema with this oldest compatible one."""
    return bool(compatible) and set(compatible) <= set(known)


async def present_revisions(connection: Connection, migrations: Mapping[str, Migration]) -> frozenset[str]:
    """Return the revision of the schema, or nothing if there is none."""
    stored = await _stored(connection, REVISION_TABLE)
    return revision_of(stored, await _stored(connection, COMPATIBILITY_TABLE), migrations)


def revision_of(
    stored: frozenset[str], compatible: frozenset[str], migrations: Mapping[str, Migration]
) -> frozenset[str]:
    """Return the revision of a schema from the contents of both tables.

    No schema needs newer programs than its own. So if the second table has the later revision, a program up to 0023 has
    migrated, which knows only that table.
    """
    before = {step.revision for revision in compatible for step in path_to(migrations, revision)}
    return compatible if before.issuperset(stored) else stored


async def _stored(connection: Connection, table: str) -> frozenset[str]:
    try:
        rows = await connection.fetch(f"SELECT version_num FROM {table}")  # noqa: S608  a constant
    except asyncpg.UndefinedTableError:
        return frozenset()
    return frozenset(row["version_num"] for row in rows)


def newer(unknown: Collection[str], compatible: Collection[str]) -> str:
    """Return the message about a database that a newer version has migrated, and that this one cannot use."""
    return (
        f"the database has {', '.join(sorted(unknown))}, which this version does not know: a newer version of jobgate "
        f"has migrated it, for programs that know {', '.join(sorted(compatible)) or 'it'}; replace this process by one "
        "of that version, or take the migration back with that version: `jobgate migrate --to "
        f"{', '.join(sorted(revisions().heads))}`"
    )
