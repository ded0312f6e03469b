"""The URL of the database, checked before a connection is opened."""

from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator

# The last one is the spelling of SQLAlchemy.
_SCHEMES = ("postgresql", "postgres", "postgresql+asyncpg")


def _check(url: str) -> str:
    if not _is_valid(url):
        # The message repeats no part of the URL: a password with a slash or an @ seems to be a part of the address.
        raise ValueError(
            "it is no URL of PostgreSQL, which has the form postgresql://user:password@host:port/database, "
            "with %-escapes for special characters of the password"
        )
    return url


def _is_valid(url: str) -> bool:
    try:
        found = urlsplit(url)
        # PostgreSQL accepts several hosts, and none for a Unix socket.
        for host in found.netloc.rpartition("@")[2].split(","):
            _ = urlsplit(f"//{host}").port  # ValueError: it is no number, or out of range
    except ValueError:
        return False
    return found.scheme in _SCHEMES


DatabaseUrl: TypeAlias = Annotated[str, AfterValidator(_check)]
