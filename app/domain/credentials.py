"""By which jobgate knows a job's own pods, and a set's servers know jobgate: derived, so that nothing is stored and
every process finds the same.
"""

import base64
import hashlib
import hmac
from typing import Final

_PURPOSE: Final = b"jobgate.dev/job-credential\0"


def runtime_token_of(key: bytes, uid: str) -> str:
    """What the runtime servers of the SampleSet with this uid are asked with: 64 hexadecimal digits."""
    return hmac.new(key, b"sample-set:" + uid.encode(), hashlib.sha256).hexdigest()


def credential_of(key: bytes, uid: str) -> str:
    """The credential of the job with this uid, under the installation's key: 43 letters, digits, - and _."""
    digest = hmac.digest(key, _PURPOSE + uid.encode(), hashlib.sha256)
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def is_credential_of(key: bytes, uid: str, token: str) -> bool:
    """Whether the token is that job's; the answer takes as long for a wrong one as for the right one."""
    return hmac.compare_digest(credential_of(key, uid).encode(), token.encode(errors="replace"))
