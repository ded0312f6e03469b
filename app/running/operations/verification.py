"""Composes the checks of `jobgate verify`, and reports what they have found."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

import msgspec

from app.db.postgres import schema_version
from app.db.postgres.timeouts import DatabaseTimeouts
from app.db.verification import cluster_rows
from app.db.verification.check import CheckResult
from app.db.verification.runner import Progress, verify_database
from app.loops.maintenance.verification import ClusterVerifier
from app.running.connections import NotConfigured, connect_cluster, open_database
from app.settings import ENV_PREFIX, Settings

# A check reads a few thousand rows in a statement, on a server with other work.
_STATEMENT_SECONDS = 60.0
MOST_SHOWN = 20
"""How many faults of a check are printed as text. JSON has all that were found."""


async def verify(
    settings: Settings, *, database_only: bool, pause: float, progress: Progress = lambda _, __: None
) -> list[CheckResult]:
    """Run all checks of the database and of its cluster. Nothing is written.

    Raises:
        NotConfigured: a setting is missing, or the database has another schema than this version.
        DatabaseUnavailable: the database does not answer.
        KubeError: the cluster does not answer, or refuses the account.
    """
    if settings.database_url is None:
        raise NotConfigured(f"no database: set {ENV_PREFIX}DATABASE_URL to postgresql://user:password@host/database")
    async with AsyncExitStack() as stack:
        timeouts = DatabaseTimeouts.of(_STATEMENT_SECONDS)
        db = await open_database(stack, settings.database_url, pool_size=1, timeouts=timeouts, name="verify")
        async with db.read() as connection:
            if unusable := await schema_version.check(connection):
                raise NotConfigured("; ".join(unusable))
        # Before the long checks, so that a missing cluster is reported at once.
        api = None if database_only else await connect_cluster(settings)
        if api is not None:
            stack.push_async_callback(api.close)
        results = await verify_database(db, pause=pause, progress=progress)
        installation = await cluster_rows.installation_id(db)
        if api is not None and installation is not None:
            verifier = ClusterVerifier(
                api, db, installation, namespaces=settings.namespaces, timeout=settings.request_timeout
            )
            results += await verifier.verify(pause=pause, progress=progress)
        return results


def as_text(results: Sequence[CheckResult]) -> list[str]:
    """Return a line for each check, and one for each of its first faults."""
    lines = []
    for result in results:
        count = len(result.faults)
        ended = "" if result.is_complete else ", where it ended"
        verdict = f"{count} fault{'s' if count > 1 else ''}{ended}: {result.why}" if count else "ok"
        lines.append(f"{result.name:<28} {result.examined:>9} {result.subjects:<26} {verdict}")
        lines += [f"    {fault.subject}: {fault.found}" for fault in result.faults[:MOST_SHOWN]]
        if count > MOST_SHOWN:
            lines.append(f"    and {count - MOST_SHOWN} others: -o json shows them")
    return lines


def as_json(results: Sequence[CheckResult]) -> str:
    """Return the results as one JSON document."""
    return msgspec.json.format(msgspec.json.encode({"checks": results})).decode()
