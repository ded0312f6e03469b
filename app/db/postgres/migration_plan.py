"""What `jobgate migrate` is going to do: the steps from the schema of a database to another one, for the operator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.db.postgres import migrations, schema_version
from app.db.postgres.engine import Database
from app.db.postgres.schema_version import Migration
from app.domain.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationPlan:
    """Steps in their order: either `added`, or `undone`, or none.

    `fault` says why this version cannot use the database before them. `result` describes the schema after them.
    """

    target: str
    added: Sequence[Migration] = ()
    undone: Sequence[Migration] = ()
    fault: str = ""
    result: str

    @property
    def is_due(self) -> bool:
        return bool(self.added or self.undone or self.fault)

    def lines(self) -> list[str]:
        """Return the steps as lines of text. The first schema of a database is of no interest."""
        if self.added and self.added[0].follows is None:
            return []
        return [line for step in self.undone for line in _undoing(step)] + [
            line for step in self.added for line in _adding(step)
        ]


async def read(url: str, target: str | None = None) -> MigrationPlan:
    """Return the steps to a revision, by default to that of this version.

    Raises:
        DatabaseUnavailable: the server does not answer.
        NotFound: this version has no such revision.
    """
    known = schema_version.read_migrations()
    if target not in {None, *known}:
        names = [step.revision for step in schema_version.path_to(known, _head(known))]
        raise NotFound(f"--to {target}: this version knows the revisions from {names[0]} to {names[-1]}")
    db = await Database.open(url, pool_size=1)
    try:
        async with db.read() as connection:
            present = await schema_version.present_revisions(connection, known)
            faults = await schema_version.check(connection)
    finally:
        await db.close()
    return plan(known, present=max(present, default=None), target=target, fault="; ".join(faults))


def plan(known: Mapping[str, Migration], *, present: str | None, target: str | None, fault: str) -> MigrationPlan:
    """Return the steps from the present revision to the target, by default the last one; none from an unknown one."""
    goal = target or _head(known)
    if present is not None and present not in known:
        result = f"the schema has {present}, which is newer; this version can use it"
        return MigrationPlan(target=goal, fault=fault, result=result)
    there, here = schema_version.path_to(known, goal), schema_version.path_to(known, present)
    return MigrationPlan(
        target=goal,
        added=[step for step in there if step not in here],
        undone=[step for step in reversed(here) if step not in there],
        fault="" if target else fault,
        result=f"the schema is that of {target}" if target else "the schema is current",
    )


def _head(known: Mapping[str, Migration]) -> str:
    (head,) = schema_version.revisions_of(known).heads
    return head


def carry_out(steps: MigrationPlan, url: str) -> None:
    """Take the steps.

    Raises:
        DatabaseUnavailable: no server answers there, or others hold its tables.
        Conflict: a newer version has migrated the database, and this version cannot use it.
    """
    if steps.undone:
        migrations.downgrade(url, steps.target)
    else:
        migrations.migrate(url, steps.target)


def _adding(step: Migration) -> list[str]:
    return [
        f"{step.revision}  {step.subject}",
        f"      stops writes: {step.blocks_writes}",
        f"      can be taken back; that loses data: {step.undoing_loses}",
        f"      programs that know {step.compatible_with} run on it",
    ]


def _undoing(step: Migration) -> list[str]:
    return [
        f"{step.revision}  is taken back: {step.subject}",
        f"      loses data: {step.undoing_loses}",
    ]
