"""What Postgres can refuse, in the vocabulary of refusals. What leaves this package untranslated is a fault of ours."""

# ruff: noqa: N818 - a refusal is named for what it says; nothing here is a fault of the program

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from app.cancellation import cancellation_first
from app.domain.errors import DomainError, InvalidManifest, Unavailable


class DatabaseUnavailable(Unavailable):
    """Postgres cannot be reached or did not answer in time. Nothing is known of a commit that was under way."""

    default_code = "DatabaseUnavailable"


class DatabaseContended(DatabaseUnavailable):
    """A lock was not to be had in time, or two transactions waited for each other: repeat it. Nothing was written."""

    default_code = "DatabaseContended"


class NotStorable(InvalidManifest):
    """A value that Postgres cannot hold: NUL in text, a number out of range, a document over its limits."""

    default_code = "NotStorable"


class LeaseLost(DomainError):
    """Somebody else holds the lease, or it has run out: whoever held it must stop at once."""

    default_code = "LeaseLost"


_NOT_STORABLE = (
    asyncpg.DataError,
    asyncpg.ProgramLimitExceededError,  # an index row or a JSON document too large
    asyncpg.StringDataRightTruncationError,
)
_CONTENDED = (
    asyncpg.LockNotAvailableError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
)
_UNAVAILABLE = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shutdown, statement timeout
    asyncpg.InsufficientResourcesError,  # disk full, too many connections
    asyncpg.PostgresSystemError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby, for as long as the failover lasts
    asyncpg.InvalidCachedStatementError,  # the schema changed under a prepared statement: it is prepared again
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)


@contextmanager
def translated() -> Iterator[None]:
    """Raise driver errors as refusals; a task that was cancelled inside the block leaves it with CancelledError."""
    try:
        with cancellation_first():
            yield
    except _NOT_STORABLE as error:
        raise NotStorable(f"the database cannot store this: {_words(error)}") from error
    except _CONTENDED as error:
        raise DatabaseContended(f"the database is busy with the same rows: {_words(error)}") from error
    except _UNAVAILABLE as error:
        raise DatabaseUnavailable(f"the database is not available: {_words(error)}") from error


def _words(error: BaseException) -> str:
    if isinstance(error, asyncpg.DataError) and not error.sqlstate:
        return "a value is of the wrong type or out of range"  # the driver's own words quote the value, maybe a secret
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
