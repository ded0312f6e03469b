"""Who acts: a name for people, and an identity that no other actor can have.

A name alone identifies nobody: a user of an issuer may have the name of a token, or that of the controller.
"""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

# What of a subject stays as it is: the visible characters of ASCII without %, which escapes the others.
_SAFE: Final = "!\"#$&'()*+,/:;<=>?@[\\]^`{|}"


@dataclass(frozen=True, slots=True)
class Actor:
    """The actor of a change, or of a request.

    Args:
        name: a name in any form. Several actors may have it.
        id: the kind of the actor, and for most kinds a colon with what identifies it within the kind: `controller`,
            `autoscaler`, `anonymous`, `job:<uid>`, `token:<id>` or `user:<issuer>#<sub>`. None if only the
            name was recorded.
    """

    name: str
    id: str | None = None

    @classmethod
    def token(cls, token_id: str, name: str) -> "Actor":
        """Return the owner of a token of jobgate."""
        return cls(name, f"{TOKEN}:{token_id}")

    @classmethod
    def user(cls, issuer: str, subject: str, name: str) -> "Actor":
        """Return a user of an OIDC issuer, whom issuer and subject identify together (OpenID Connect Core 1.0, 5.7)."""
        # An issuer has no fragment, so the first # ends it.
        return cls(name, f"{USER}:{issuer}#{quote(subject, safe=_SAFE)}")

    @classmethod
    def job(cls, uid: str, name: str) -> "Actor":
        """Return the pods of a job, which act with its credential."""
        return cls(f"job/{name}", f"{JOB}:{uid}")


TOKEN: Final = "token"  # noqa: S105  a kind of actor
USER: Final = "user"
JOB: Final = "job"
CONTROLLER: Final = Actor("jobgate", "controller")
AUTOSCALER: Final = Actor("autoscaler", "autoscaler")
ANONYMOUS: Final = Actor("anonymous", "anonymous")
"""Each caller of a gateway with open access."""
_ALONE: Final = frozenset(actor.id for actor in (CONTROLLER, AUTOSCALER, ANONYMOUS))


def is_identity(text: str) -> bool:
    """Return whether a text has the form of the id of an actor. Otherwise it can only be a name."""
    return text in _ALONE or text.startswith((f"{TOKEN}:", f"{USER}:", f"{JOB}:"))
