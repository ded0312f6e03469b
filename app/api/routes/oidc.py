"""Sign-in by OIDC: what clients need to know about the issuer, and the exchange of codes for tokens."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlsplit

from fastapi import Depends, Request, Response
from pydantic import Field, model_validator

from app.api.answers.errors import parameter_error
from app.api.answers.responses import JSON, NO_STORE, PRIVATE, json_bytes
from app.api.requests.bodies import read_options
from app.api.requests.dependencies import api_of
from app.api.requests.parameters import refuse_unknown_query
from app.api.routers import new_router
from app.api.views.base import View
from app.domain.errors import NotFound, TooLarge, invalid_manifest
from app.domain.kinds.spec.model import SpecModel
from app.fairness.byte_budget import UNCOUNTED_BYTES
from app.http_server.forwarding import site_of
from app.services.oidc.exchange import Exchange
from app.services.oidc.issuer_settings import OidcSettings

if TYPE_CHECKING:
    from app.services.oidc.sign_in import SignIn

router = new_router("system")
# A client calls these routes to get its first token.
_WITHOUT_TOKEN: Final = [Depends(refuse_unknown_query)]
# The body is read without a token, so it takes no room of the budget for bodies of submissions. A code or a refresh
# token has some KiB at most.
_MAX_BODY: Final = UNCOUNTED_BYTES
_Secret = Annotated[str, Field(min_length=1, max_length=15 * 1024)]
_WAYS: Final = ("code", "refresh_token", "device_code")


class OidcView(View):
    """How users sign in at the OIDC issuer of the gateway. Unless `enabled`, all other fields are null or empty."""

    enabled: bool
    """Whether the gateway accepts tokens of an issuer."""
    issuer: str | None
    """The URL of the issuer."""
    client_id: str | None
    """The id of jobgate's public client at the issuer."""
    scopes: list[str]
    """The scopes that a sign-in requests."""
    authorization_endpoint: str | None
    """Where a browser begins a sign-in with a code and PKCE; null until known, and if the issuer has none."""
    device_authorization_endpoint: str | None
    """Where a program begins a sign-in with a device code; null until known, and if the issuer has none."""


class OidcTokenRequest(SpecModel):
    """What a client received from the issuer: exactly one of `code`, `refreshToken` and `deviceCode`."""

    code: _Secret | None = None
    """An authorization code. It needs `codeVerifier` and `redirectUri`."""
    code_verifier: Annotated[str, Field(pattern=r"^[A-Za-z0-9._~-]{43,128}$")] | None = None
    """The PKCE verifier (RFC 7636). The authorization request had its S256 challenge."""
    redirect_uri: Annotated[str, Field(max_length=2048)] | None = None
    """The redirect URI of the authorization request. Its host must be that of this request."""
    nonce: Annotated[str, Field(min_length=16, max_length=256)] | None = None
    """The nonce of the authorization request. The ID token must have the same one."""
    refresh_token: _Secret | None = None
    """A refresh token."""
    device_code: _Secret | None = None
    """A device code (RFC 8628)."""

    @model_validator(mode="after")
    def _is_one_way(self) -> "OidcTokenRequest":
        if sum(getattr(self, way) is not None for way in _WAYS) != 1:
            raise ValueError("exactly one of code, refreshToken and deviceCode is required")
        if (self.code is None) != (self.code_verifier is None) or (self.code is None) != (self.redirect_uri is None):
            raise ValueError("codeVerifier and redirectUri belong to code: all three or none of them")
        if self.code is None and self.nonce is not None:
            raise ValueError("nonce belongs to code")
        return self


class OidcTokenView(View):
    """The outcome of a sign-in."""

    token: str
    """The bearer token of further requests."""
    refresh_token: str | None
    """The refresh token for the next exchange, in place of that of the request; null if the issuer gives none."""
    expires_at: datetime
    """When the gateway ceases to accept the token."""


_OFF: Final = OidcView(
    enabled=False,
    issuer=None,
    client_id=None,
    scopes=[],
    authorization_endpoint=None,
    device_authorization_endpoint=None,
)
_BODY: Final = {"required": True, "content": {JSON: {"schema": OidcTokenRequest.model_json_schema()}}}
_TOKEN: Final[dict[int | str, dict[str, Any]]] = {200: {"model": OidcTokenView}}


def _view(settings: OidcSettings, sign_in: "SignIn") -> OidcView:
    metadata = sign_in.issuer.metadata
    return OidcView(
        enabled=True,
        issuer=settings.issuer,
        client_id=settings.client_id,
        scopes=settings.scopes.split(),
        authorization_endpoint=(metadata.authorization if metadata else "") or None,
        device_authorization_endpoint=(metadata.device_authorization if metadata else "") or None,
    )


@router.get("/api/v1/oidc", response_model=None, responses={200: {"model": OidcView}}, dependencies=_WITHOUT_TOKEN)
async def get_oidc(request: Request) -> Response:
    """Return how users sign in by OIDC. This needs no token."""
    sign_in = api_of(request).services.sign_in
    view = _OFF if sign_in is None else _view(sign_in.settings, sign_in)
    return Response(json_bytes(view), media_type=JSON, headers=PRIVATE)


@router.post(
    "/api/v1/oidc/token",
    response_model=None,
    responses=_TOKEN,
    openapi_extra={"requestBody": _BODY},
    dependencies=_WITHOUT_TOKEN,
)
async def create_oidc_token(request: Request) -> Response:
    """Exchange a code, a refresh token or a device code of the issuer for a token. This needs no token.

    While the user has not confirmed a device code, the code of the problem is `AuthorizationPending` or `SlowDown`.
    """
    sign_in = api_of(request).services.sign_in
    if sign_in is None:
        raise NotFound("this gateway has no OIDC issuer")
    _require_short(request)
    wanted = await read_options(request, OidcTokenRequest)
    site = site_of(request.client.host if request.client else "")
    if wanted.refresh_token is not None:
        found = await sign_in.renew(wanted.refresh_token, site)
    else:
        found = await sign_in.exchange(_exchange(wanted, request.headers.get("host", "")), site)
    view = OidcTokenView(token=found.token, refresh_token=found.refresh_token, expires_at=found.expires_at)
    return Response(json_bytes(view), media_type=JSON, headers=NO_STORE)


def _require_short(request: Request) -> None:
    length = request.headers.get("content-length")
    if length is None:
        raise parameter_error("header", "Content-Length", "Required", "the length of the body is missing", "a number")
    if not length.isdecimal() or int(length) > _MAX_BODY:
        raise TooLarge(f"the body may have at most {_MAX_BODY} bytes")


def _exchange(wanted: OidcTokenRequest, host: str) -> Exchange:
    if wanted.device_code is not None:
        return Exchange.of_device_code(wanted.device_code)
    assert wanted.code is not None, "the model requires one of three ways, and this function is not for refresh tokens"
    assert wanted.code_verifier is not None
    assert wanted.redirect_uri is not None
    if not _is_of_host(wanted.redirect_uri, host):
        detail = "the redirect URI has another host than this request"
        raise invalid_manifest("InvalidRedirect", detail, "/redirectUri", f"a URL of {host}")
    return Exchange.of_code(wanted.code, wanted.code_verifier, wanted.redirect_uri, wanted.nonce)


def _is_of_host(url: str, host: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    # netloc contains a user, which is not part of a host.
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower() and not parts.fragment
