"""Which tokens of an issuer are for the use that a gateway accepts."""

from typing import Any

import pytest

from app.domain.access.claims import InvalidClaims
from app.domain.access.token_types import ExpectedToken, TokenUse

ID, ACCESS = TokenUse.ID, TokenUse.ACCESS
CLAIMS = {"aud": "me", "iat": 1}


@pytest.mark.parametrize(
    ("use", "header", "claims"),
    [
        (ID, {}, {}),
        (ID, {"typ": "JWT"}, {"typ": "ID"}),
        (ID, {"typ": "application/jwt"}, {"azp": "me"}),
        (ID, {}, {"aud": ["me"]}),
        (ID, {}, {"aud": ["me", "other"], "azp": "me"}),
        (ACCESS, {"typ": "at+JWT"}, {"typ": "Bearer"}),
        (ACCESS, {"typ": "application/at+jwt"}, {"typ": "DPoP", "azp": "other"}),
    ],
)
def test_tokens_of_the_use(use: TokenUse, header: dict[str, Any], claims: dict[str, Any]) -> None:
    ExpectedToken(use, "me").require(header, CLAIMS | claims)


@pytest.mark.parametrize(
    ("use", "header", "claims", "words"),
    [
        (ID, {"typ": "at+jwt"}, {}, "accepts an ID token"),
        (ID, {"typ": 7}, {}, "accepts an ID token"),
        (ID, {"typ": None}, {}, "accepts an ID token"),
        (ID, {}, {"typ": "Bearer"}, "accepts an ID token"),
        (ACCESS, {"typ": "logout+jwt"}, {}, "accepts an access token"),
        (ACCESS, {}, {"typ": ["Bearer"]}, "accepts an access token"),
        (ACCESS, {}, {"typ": "Refresh"}, "accepts an access token"),
        (ACCESS, {}, {"events": {}}, "describes an event"),
        (ID, {}, {"azp": "other"}, "another client"),
        (ID, {}, {"aud": ["me", "other"]}, "another client"),
        (ID, {}, {"aud": ["me", "other"], "azp": "other"}, "another client"),
    ],
)
def test_other_tokens(use: TokenUse, header: dict[str, Any], claims: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidClaims, match=words):
        ExpectedToken(use, "me").require(header, CLAIMS | claims)


def test_an_id_token_says_when_it_was_issued() -> None:
    with pytest.raises(InvalidClaims, match="iat"):
        ExpectedToken(ID, "me").require({}, {"aud": "me"})
    ExpectedToken(ACCESS, "me").require({}, {"aud": "me"})
