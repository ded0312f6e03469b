"""Settings of the pod policy: which pod templates are accepted."""

from typing import Annotated

from pydantic import Field, field_validator

from app.domain.policy import Level, PodPolicy
from app.domain.policy.keys import is_pattern
from app.domain.policy.table import NAMES
from app.settings.oidc import SignInSettings
from app.settings.serving import Names


class PolicySettings(SignInSettings):
    """The level of the pod policy, and what it permits beyond that."""

    pod_policy: Annotated[
        Level, Field(description="level of the Pod Security Standards that pod templates must meet")
    ] = Level.BASELINE
    pod_policy_allow: Annotated[
        Names, Field(description="comma-separated controls of the pod policy that are not enforced")
    ] = ()
    pod_policy_annotations: Annotated[
        Names,
        Field(description="comma-separated annotations that templates may have besides harmless ones; example.com/*"),
    ] = ()
    pod_policy_labels: Annotated[
        Names,
        Field(description="comma-separated labels that templates may have besides harmless ones; example.com/*"),
    ] = ()
    pod_policy_user_namespaces: Annotated[
        bool,
        Field(description="whether hostUsers: false lifts controls; off, because a cluster without support drops it"),
    ] = False
    service_accounts: Annotated[
        Names,
        Field(description="comma-separated service accounts that pods may use besides default; * is all"),
    ] = ()

    @field_validator("pod_policy_allow")
    @classmethod
    def _name_controls(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := sorted(set(value) - NAMES):
            raise ValueError(f"there is no control {', '.join(unknown)}; the controls are {', '.join(sorted(NAMES))}")
        return value

    @field_validator("pod_policy_annotations", "pod_policy_labels")
    @classmethod
    def _are_patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [text for text in value if not is_pattern(text)]:
            raise ValueError(f"{', '.join(wrong)}: neither a key nor the beginning of keys, such as example.com/*")
        return value

    def policy(self) -> PodPolicy:
        return PodPolicy(
            level=self.pod_policy,
            allow=frozenset(self.pod_policy_allow),
            service_accounts=frozenset(self.service_accounts),
            annotations=frozenset(self.pod_policy_annotations),
            labels=frozenset(self.pod_policy_labels),
            user_namespaces=self.pod_policy_user_namespaces,
        )
