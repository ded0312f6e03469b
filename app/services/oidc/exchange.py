"""The form that asks an issuer for a token, and the token that a client gets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

_CODE_TYPE: Final = "urn:ietf:params:oauth:grant-type:device_code"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A form for the token endpoint, without the client id. `nonce` is what the ID token must repeat, if given."""

    form: Mapping[str, str] = field(repr=False)
    nonce: str | None = None

    @classmethod
    def of_code(cls, code: str, verifier: str, redirect_uri: str, nonce: str | None) -> "Exchange":
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": redirect_uri,
        }
        return cls(form=form, nonce=nonce)

    @classmethod
    def of_refresh_token(cls, token: str) -> "Exchange":
        return cls(form={"grant_type": "refresh_token", "refresh_token": token})

    @classmethod
    def of_device_code(cls, code: str) -> "Exchange":
        return cls(form={"grant_type": _CODE_TYPE, "device_code": code})


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedIn:
    """A token that the gateway accepts, and the refresh token if the issuer has given one."""

    token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)
    expires_at: datetime
