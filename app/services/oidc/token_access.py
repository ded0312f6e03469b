"""Composes the access with tokens. Only a process with an issuer imports the code that verifies the issuer's tokens."""

from typing import TYPE_CHECKING

from app.base.clock import Clock
from app.db.postgres.engine import Database
from app.services.access import Access, TokenAccess
from app.services.oidc.issuer_settings import OidcSettings

if TYPE_CHECKING:
    from app.services.oidc.sign_in import SignIn


def token_access(
    db: Database, clock: Clock, settings: OidcSettings | None, key: bytes
) -> tuple[Access, "SignIn | None"]:
    """Return the access with tokens of jobgate, and of an issuer if one is configured, and the sign-in there.

    The key of the installation seals refresh tokens.
    """
    stored = TokenAccess(db, clock)
    if settings is None:
        return stored, None
    # Few gateways have an issuer, and JWT and cryptography are slow imports.
    from app.services.oidc.access import OidcAccess, TokenOrOidcAccess  # noqa: PLC0415
    from app.services.oidc.issuer import Issuer  # noqa: PLC0415
    from app.services.oidc.sign_in import SignIn  # noqa: PLC0415

    issuer = Issuer(settings.issuer, clock)
    access = OidcAccess(settings, issuer, clock)
    return TokenOrOidcAccess(stored, access), SignIn(settings, issuer, access, clock, key)
