"""Build and drop indexes of large tables while clients read and write them. Migrations use this.

PostgreSQL does both outside of a transaction. What a migration has done before is then committed, so each step of such
a migration must be harmless if it is repeated.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from alembic import op
from sqlalchemy import text

_IS_INVALID = "SELECT NOT indisvalid FROM pg_index WHERE indexrelid = to_regclass(:name)"


def create_index(name: str, definition: str) -> None:
    """Build an index, as `create_index("jobs_by_x", "ON jobs (x)")`. An index that an earlier try has built stays."""
    with _outside_of_transactions():
        # An interrupted build leaves an index that is maintained and never read.
        if op.get_bind().execute(text(_IS_INVALID), {"name": name}).scalar():
            op.execute(f"DROP INDEX CONCURRENTLY {name}")
        op.execute(f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} {definition}")


def drop_index(name: str) -> None:
    """Drop an index, if it exists."""
    with _outside_of_transactions():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


@contextmanager
def _outside_of_transactions() -> Iterator[None]:
    """Commit, and run the block without timeouts: it waits for earlier transactions, and no client waits for it."""
    with op.get_context().autocommit_block():
        before = {name: _setting(name) for name in ("lock_timeout", "statement_timeout")}
        for name in before:
            _set(name, "0")
        yield
        for name, value in before.items():
            _set(name, value)


def _setting(name: str) -> str:
    return str(op.get_bind().execute(text("SELECT current_setting(:name)"), {"name": name}).scalar())


def _set(name: str, value: str) -> None:
    op.get_bind().execute(text("SELECT set_config(:name, :value, false)"), {"name": name, "value": value})
