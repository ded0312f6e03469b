"""Bytes to plain values, strictly.

JSON that two readers could understand differently is refused with its place and what to write instead. YAML is read as
kubectl reads it. Work and memory are bounded by the length of the body and by limits on the shape of the document, the
answer by MAX_ERRORS. A limit on the length of the body is the caller's.
"""

from app.domain.decoding.from_json import decode_json
from app.domain.decoding.from_yaml import decode_yaml
from app.domain.decoding.values import DEFAULT_LIMITS, DecodingLimits, JsonValue

__all__ = ["DEFAULT_LIMITS", "DecodingLimits", "JsonValue", "decode_json", "decode_yaml"]
