"""Which of the tokens that an issuer signs is meant for this gateway.

An issuer signs tokens for many purposes with the same keys. So each purpose has rules that the tokens of the others do
not fulfil (RFC 8725, 3.11 and 3.12).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from app.domain.access.claims import InvalidClaims

_MEDIA_TYPE: Final = "application/"


class TokenUse(StrEnum):
    """What a token is for."""

    ID = "ID token"
    ACCESS = "access token"


# The header `typ`, in lower case. It is optional, except in tokens that a gateway never accepts (RFC 9068, 2.1).
_TYPES: Final[Mapping[TokenUse, frozenset[str]]] = {
    TokenUse.ID: frozenset({"jwt"}),
    TokenUse.ACCESS: frozenset({"jwt", "at+jwt"}),
}
# The claim `typ` of Keycloak, which has `JWT` in the headers of all its tokens.
_CLAIMED_TYPES: Final[Mapping[TokenUse, frozenset[str]]] = {
    TokenUse.ID: frozenset({"id", "jwt"}),
    TokenUse.ACCESS: frozenset({"bearer", "dpop", "jwt", "at+jwt"}),
}


@dataclass(frozen=True, slots=True)
class ExpectedToken:
    """A token for the audience. The audience of an ID token is the client for which the issuer made it."""

    use: TokenUse
    audience: str

    def require(self, header: Mapping[str, Any], claims: Mapping[str, Any]) -> None:
        """Require that a token with the right audience and these headers and claims is one of this use.

        Raises:
            InvalidClaims: it is not.
        """
        for found, accepted in ((header, _TYPES), (claims, _CLAIMED_TYPES)):
            typ = found.get("typ", "jwt")
            if not isinstance(typ, str) or typ.lower().removeprefix(_MEDIA_TYPE) not in accepted[self.use]:
                raise InvalidClaims(f"the token is of another type: this gateway accepts an {self.use}")
        # Security events and logout tokens, also of issuers that do not type them (Back-Channel Logout 1.0, 2.4).
        if "events" in claims:
            raise InvalidClaims(f"the token describes an event: this gateway accepts an {self.use}")
        if self.use is TokenUse.ID:
            self._require_own_client(claims)

    def _require_own_client(self, claims: Mapping[str, Any]) -> None:
        """Check the rules of OpenID Connect Core 1.0, 3.1.3.7, on clients and times."""
        if "iat" not in claims:
            raise InvalidClaims("the token does not say when it was issued (iat), as each ID token does")
        others = isinstance(claims["aud"], list) and any(each != self.audience for each in claims["aud"])
        if claims.get("azp", None if others else self.audience) != self.audience:
            raise InvalidClaims("the token was issued to another client (azp)")
