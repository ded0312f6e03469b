"""A minimal protobuf encoder for request bodies of tests."""

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"


def varint(number: int) -> bytes:
    number %= 1 << 64
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    raw = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def body(kind: str, raw: bytes) -> bytes:
    """Return a request's body as client-go sends it: an envelope that names version and kind."""
    named = field(1, "v1") + field(2, kind)
    return b"k8s\x00" + field(1, named) + field(2, raw) + field(3, "") + field(4, "")
