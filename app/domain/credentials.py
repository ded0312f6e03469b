"""Credentials that are derived from the key of the installation, so that none is stored and every process agrees.

The pods of a job authenticate to jobgate with its credential, and jobgate authenticates to runtime servers with their
token.
"""

import base64
import hashlib
import hmac
from typing import Final

_PURPOSE: Final = b"jobgate.dev/job-credential\0"


def runtime_token_of(key: bytes, uid: str) -> str:
    """The token of the runtime servers of the SampleSet with this uid: 64 hexadecimal digits."""
    return hmac.new(key, b"sample-set:" + uid.encode(), hashlib.sha256).hexdigest()


def credential_of(key: bytes, uid: str) -> str:
    """The credential of the job with this uid, under the installation's key: 43 letters, digits, - and _."""
    digest = hmac.digest(key, _PURPOSE + uid.encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def is_credential_of(key: bytes, uid: str, token: str) -> bool:
    """Whether the token is the credential of that job. The comparison takes the same time for every token."""
    return hmac.compare_digest(credential_of(key, uid).encode(), token.encode(errors="replace"))
