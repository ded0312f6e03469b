"""The roles of API tokens, and the credentials that are derived from the key of the installation.

The pods of a job authenticate to jobgate with the credential of the job. jobgate authenticates to the runtime servers
of a SampleSet with their token. Both are derived, so neither is stored, and every process computes the same ones.
"""

import base64
import hashlib
import hmac
from enum import StrEnum
from typing import Final

# Each purpose has its own prefix, so that a credential of one kind can never be used as another.
_PURPOSE: Final = b"jobgate.dev/job-credential\0"


def runtime_token_of(key: bytes, uid: str) -> str:
    """Return the token of the runtime servers of the SampleSet with this uid: 64 hexadecimal digits."""
    return hmac.new(key, b"sample-set:" + uid.encode(), hashlib.sha256).hexdigest()


def credential_of(key: bytes, uid: str) -> str:
    """Return the credential of the job with this uid, under the installation's key: 43 letters, digits, - and _."""
    digest = hmac.digest(key, _PURPOSE + uid.encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def is_credential_of(key: bytes, uid: str, token: str) -> bool:
    """Return whether the token is the credential of the job with this uid. The comparison takes constant time."""
    # Bytes, since compare_digest raises TypeError for text that is not ASCII. A replaced character equals no
    # credential.
    return hmac.compare_digest(credential_of(key, uid).encode(), token.encode(errors="replace"))


class Role(StrEnum):
    """The role of an API token. Each role includes the rights of the one before it; docs/access.md lists them."""

    VIEWER = "viewer"
    SUBMITTER = "submitter"
    ADMIN = "admin"
