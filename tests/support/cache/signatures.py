"""Verifies S3 signatures (version 4), which require the secret key."""

import hashlib
import hmac
import re
from email.message import Message
from urllib.parse import parse_qsl, quote, urlsplit

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<access>[^/]+)/(?P<scope>[^,]+), ?SignedHeaders=(?P<names>[^,]+), ?"
    r"Signature=(?P<signature>[0-9a-f]+)"
)


def is_signed(method: str, target: str, headers: "Message[str, str]", access: str, secret: str) -> bool:
    found = _AUTHORIZATION.fullmatch(headers.get("Authorization", ""))
    if found is None or found["access"] != access:
        return False
    parts = urlsplit(target)
    query = sorted(
        (quote(k, safe="-_.~"), quote(v, safe="-_.~")) for k, v in parse_qsl(parts.query, keep_blank_values=True)
    )
    names = found["names"].split(";")
    canonical = "\n".join(
        [
            method,
            parts.path,
            "&".join(f"{key}={value}" for key, value in query),
            *(f"{name}:{' '.join(headers.get(name, '').split())}" for name in names),
            "",
            found["names"],
            headers.get("X-Amz-Content-Sha256", ""),
        ]
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", headers.get("X-Amz-Date", ""), found["scope"], digest])
    key = f"AWS4{secret}".encode()
    for word in found["scope"].split("/"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    wanted = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return hmac.compare_digest(wanted, found["signature"])
