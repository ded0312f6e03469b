"""Decodes JSON and YAML strictly into plain values.

JSON that two parsers could read differently is refused, with its place and the accepted form. YAML is read like kubectl
reads it. Time and memory are bounded by the length of the body and by limits on the shape of the document, and the
number of reported errors by MAX_ERRORS. The caller limits the length of the body.
"""

from app.domain.decoding.from_json import decode_json
from app.domain.decoding.from_yaml import decode_yaml
from app.domain.decoding.values import DEFAULT_LIMITS, DecodingLimits, JsonValue

__all__ = ["DEFAULT_LIMITS", "DecodingLimits", "JsonValue", "decode_json", "decode_yaml"]
