"""Settings of the sign-in by OIDC."""

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from app.domain.access.claims import ClaimNames
from app.domain.access.grants import read_group_grants
from app.services.oidc.issuer_settings import OidcSettings, is_safe
from app.settings.serving import Names, ServingSettings


class SignInSettings(ServingSettings):
    """The issuer of tokens, jobgate's client there, and the rights of its users."""

    oidc_issuer: Annotated[
        str | None, Field(description="URL of the OIDC issuer, exactly as the claim iss of its tokens; empty for none")
    ] = None
    oidc_client_id: Annotated[str, Field(description="id of jobgate's public client at the issuer")] = ""
    oidc_audience: Annotated[
        str,
        Field(description="aud of accepted tokens; the client id by default. Users then send ID, else access tokens"),
    ] = ""
    oidc_scopes: Annotated[
        str,
        Field(description="scopes that sign-ins request, separated by spaces; offline_access yields refresh tokens"),
    ] = "openid profile email offline_access"
    oidc_name_claim: Annotated[
        Names, Field(description="comma-separated claims with the user's name; the first present one, then sub")
    ] = ("preferred_username", "email")
    oidc_groups_claim: Annotated[
        str, Field(description="claim with the user's groups; dots lead into objects, as in realm_access.roles")
    ] = "groups"
    oidc_grants: Annotated[
        str,
        Field(
            description="rights of groups as GROUP=ROLE:NAMESPACE,NAMESPACE entries, separated by ; or line ends. The "
            "group * is every user, the namespace * all namespaces"
        ),
    ] = ""

    @field_validator("oidc_issuer")
    @classmethod
    def _is_safe(cls, value: str | None) -> str | None:
        if value and not is_safe(value):
            raise ValueError("the issuer must be an https URL, or an http URL of this machine")
        return value or None

    @field_validator("oidc_grants")
    @classmethod
    def _grants_can_be_read(cls, value: str) -> str:
        read_group_grants(value)
        return value

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        missing = [name for name in ("oidc_client_id", "oidc_grants") if not getattr(self, name).strip()]
        if self.oidc_issuer is not None and missing:
            variables = " and ".join(f"JOBGATE_{name.upper()}" for name in missing)
            raise ValueError(f"JOBGATE_OIDC_ISSUER also needs {variables}: without, no user can do anything")
        if self.oidc_issuer is not None and self.open_access:
            raise ValueError(
                "JOBGATE_OIDC_ISSUER and JOBGATE_OPEN_ACCESS exclude each other: each caller would be an admin"
            )
        return self

    def oidc(self) -> OidcSettings | None:
        """Return the settings of the sign-in; None if no issuer is configured."""
        if self.oidc_issuer is None:
            return None
        return OidcSettings(
            issuer=self.oidc_issuer,
            client_id=self.oidc_client_id,
            audience=self.oidc_audience or self.oidc_client_id,
            scopes=" ".join(self.oidc_scopes.split()),
            grants=read_group_grants(self.oidc_grants),
            claims=ClaimNames(name=self.oidc_name_claim, groups=self.oidc_groups_claim),
        )
