"""Errors of PostgreSQL as errors of the domain. An error of the driver that is not translated is a bug."""

# ruff: noqa: N818 - these exceptions are named after what happened, as all errors of the domain

import re
from types import TracebackType
from typing import Final

import asyncpg
from typing_extensions import override

from app.base.cancellation import CancellationFirst
from app.domain.errors import Conflict, DomainError, FieldError, InvalidManifest, Unavailable


class DatabaseUnavailable(Unavailable):
    """PostgreSQL is unreachable or did not answer in time. A commit in progress may or may not have succeeded."""

    default_code = "DatabaseUnavailable"


class DatabaseContended(DatabaseUnavailable):
    """A lock timed out, or a deadlock was resolved. Nothing was written; the caller may retry."""

    default_code = "DatabaseContended"


class KeyContended(DatabaseContended):
    """A lock on an idempotency key timed out: another request with this key is in progress. Nothing was written."""


class DatabaseRefused(DatabaseUnavailable):
    """PostgreSQL answers, but not for this: wrong password, a role without the right, a missing database or table."""


class NotStorable(InvalidManifest):
    """PostgreSQL cannot store a value: NUL in text, a number out of range, a document over its limits."""

    default_code = "NotStorable"


class TooManyKeptJobs(Conflict):
    """The namespace has as many pinned jobs as it may have. Nothing was written."""

    default_code = "TooManyKeptJobs"


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
# Only an operator can change them. A process that runs already keeps trying, as while PostgreSQL does not answer.
_REFUSED = (
    asyncpg.InvalidAuthorizationSpecificationError,  # also a wrong password
    asyncpg.InvalidCatalogNameError,  # there is no such database, or it is being restored
    asyncpg.InsufficientPrivilegeError,
    asyncpg.InvalidSchemaNameError,
    asyncpg.UndefinedTableError,
    asyncpg.UndefinedColumnError,
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
    asyncpg.ClientConfigurationError,  # the URL is wrong
    asyncpg.UnsupportedServerFeatureError,  # a proxy without LISTEN
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)
# asyncpg raises InterfaceError for the state of a connection, for an authentication that it does not support, and for a
# wrong use, such as a wrong number of arguments. Only the message tells them apart. The last is a bug, which no
# repetition cures.
_LOST: Final = re.compile("(connection|pool) is clos(ed|ing)|another operation is|released back to the pool")
_AUTHENTICATION: Final = re.compile("authentication", re.IGNORECASE)


MOST_KEPT_JOBS: Final = "most_kept_jobs"
"""The constraint that the trigger `set_pinned` names."""


class TranslatedErrors(CancellationFirst):
    """Raises errors of the driver that leave the block as errors of the domain. A cancellation has precedence."""

    __slots__ = ()

    @override
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            return
        super().__exit__(kind, error, traceback)
        if translation := translate(error):
            raise translation from error


def translate(error: BaseException) -> DomainError | None:
    """Return the error of the domain for one of the driver; None if it is another one, or a bug."""
    if isinstance(error, asyncpg.CheckViolationError) and error.constraint_name == MOST_KEPT_JOBS:
        return _too_many_kept(namespace=error.args[0], most=error.detail or "")
    if isinstance(error, _NOT_STORABLE):
        return NotStorable(f"the database cannot store this: {_words(error)}")
    if isinstance(error, _CONTENDED):
        return DatabaseContended(f"the database is busy with the same rows: {_words(error)}")
    if isinstance(error, _UNAVAILABLE) or _is_interface_error(error, _LOST):
        return DatabaseUnavailable(f"the database is not available: {_words(error)}")
    if isinstance(error, _REFUSED) or _is_interface_error(error, _AUTHENTICATION):
        return DatabaseRefused(f"the database refuses this: {_words(error)}")
    return None


def _is_interface_error(error: BaseException, message: re.Pattern[str]) -> bool:
    return isinstance(error, asyncpg.InterfaceError) and message.search(str(error)) is not None


def _too_many_kept(namespace: str, most: str) -> TooManyKeptJobs:
    """Return the error of the trigger `set_pinned`."""
    return TooManyKeptJobs(
        f"the namespace {namespace} has {most} pinned jobs, as many as it may have: unpin others",
        errors=[
            FieldError(
                pointer="/metadata/annotations/jobgate.dev~1keep",
                code=TooManyKeptJobs.default_code,
                detail="the job would be pinned",
                accepted="false, or no annotation",
            )
        ],
    )


def is_of_row(error: asyncpg.LockNotAvailableError, table: str) -> bool:
    """Return whether the lock that timed out was that of a row of this table, not of a table.

    PostgreSQL reports the row and its table in the context of the error, in the language of the server, and gives no
    context for a table.
    """
    return table in (error.context or "")


def _words(error: BaseException) -> str:
    # The driver's own message quotes the value, maybe a secret. Only the server's errors have a severity.
    if isinstance(error, asyncpg.DataError) and error.severity is None:
        return "a value is of the wrong type or out of range"
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
