"""Run by Alembic for every command, with a connection that `app.db.postgres.migrations` has put into the configuration.

Two starting processes may migrate at once: the second waits for the first, under a lock that is taken inside the
transaction. Taken before it, Alembic would believe the transaction to be somebody else's and never commit.
"""

from alembic import context
from sqlalchemy import Connection, text

from app.models import metadata

# Arbitrary, but the same in every version: migrations of all versions wait for each other.
MIGRATION_LOCK = 7_210_113_355_028_441
# While a migration waits for a table, all later requests queue behind it. It must give up soon.
LOCK_TIMEOUT = "15s"
# A migration that hangs must not keep its locks forever.
STATEMENT_TIMEOUT = "10min"


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, compare_server_default=True)
    with context.begin_transaction():
        # Before the timeouts are set: a second process waits for as long as the first one migrates.
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
        connection.execute(text(f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT}'"))
        context.run_migrations()


if context.is_offline_mode():
    raise SystemExit("migrations run against a database: use `jobgate migrate`")
run(context.config.attributes["connection"])
