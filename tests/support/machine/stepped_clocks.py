"""Steps of clocks: that of a database, by a function in front of PostgreSQL's own, and that of a gateway's host."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.base import clock

HOST_STEP = "TEST_HOST_STEP"  # names a file with the seconds by which the clock of a gateway process is ahead
# `public` before `pg_catalog`, so that the statements of later sessions find this function.
_STEPPABLE = """
CREATE TABLE clock_step (seconds double precision NOT NULL);
INSERT INTO clock_step VALUES (0);
CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT pg_catalog.clock_timestamp() + make_interval(secs => seconds) FROM public.clock_step
$$;
DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
END $$;
"""


async def make_steppable(connection: Any) -> None:
    """Let `step_database` move the clock that later sessions of this database see."""
    await connection.execute(_STEPPABLE)


async def step_database(connection: Any, seconds: float) -> None:
    await connection.execute("UPDATE clock_step SET seconds = $1", seconds)


def step_host(file: Path, seconds: float) -> None:
    """Let the clock of the processes that have this file be ahead by so many seconds."""
    new = file.with_suffix(".new")
    new.write_text(str(seconds))
    new.replace(file)


def install(file: Path, patch: pytest.MonkeyPatch) -> None:
    """Let the wall clock of this process follow the file. Its monotonic clock does not."""
    true_time = clock.SystemClock.now

    def stepped(self: clock.SystemClock) -> datetime:
        return true_time(self) + timedelta(seconds=float(file.read_text()))

    patch.setattr(clock.SystemClock, "now", stepped)
