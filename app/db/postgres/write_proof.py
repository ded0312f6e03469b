"""A check that PostgreSQL accepts writes. Reads succeed on a standby and with a full or frozen disk; writes do not."""

import asyncio

from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable

# Rows that do not fit into `work_mem` go to a temporary file of about 0.5 MB. It needs free space on the disk, which an
# UPDATE does not: Postgres recycles pages and write-ahead log, so small updates succeed on a disk that is full.
_LITTLE_MEMORY = "SET LOCAL work_mem = '64kB'"
_NEEDS_SPACE = "SELECT count(*) FROM generate_series(1, 20000)"
_WRITES = "UPDATE installation SET id = id"


async def prove_writable(db: Database, within: float) -> None:
    """Commit a write and use fresh disk space.

    Raises:
        DatabaseUnavailable: the write failed or took longer than `within` seconds.
    """
    try:
        async with asyncio.timeout(within), db.begin() as connection:
            await connection.execute(_LITTLE_MEMORY)
            await connection.fetchval(_NEEDS_SPACE)
            await connection.execute(_WRITES)
    except TimeoutError as error:
        raise DatabaseUnavailable(f"the database has not accepted a write within {within:g} s") from error
