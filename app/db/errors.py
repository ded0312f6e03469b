"""Errors of PostgreSQL as errors of the domain. An error of the driver that is not translated is a bug."""

# ruff: noqa: N818 - these exceptions are named after what happened, as all errors of the domain

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from app.cancellation import cancellation_first
from app.domain.errors import DomainError, InvalidManifest, Unavailable


class DatabaseUnavailable(Unavailable):
    """PostgreSQL is unreachable or did not answer in time. A commit in progress may or may not have succeeded."""

    default_code = "DatabaseUnavailable"


class DatabaseContended(DatabaseUnavailable):
    """A lock timed out, or a deadlock was resolved. Nothing was written; the caller may retry."""

    default_code = "DatabaseContended"


class NotStorable(InvalidManifest):
    """PostgreSQL cannot store a value: NUL in text, a number out of range, a document over its limits."""

    default_code = "NotStorable"


class LeaseLost(DomainError):
    """The lease has expired or belongs to another process: its former holder must stop at once."""

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
    # This process was frozen within a transaction, and the server has ended its session.
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby, for as long as the failover lasts
    asyncpg.InvalidCachedStatementError,  # the schema changed under a prepared statement; asyncpg prepares it again
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of the driver as errors of the domain. A cancellation inside the block has precedence."""
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
        return "a value is of the wrong type or out of range"  # the driver's message quotes the value, maybe a secret
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
