"""The rules for names, labels and keys. Each function returns None, or the message of a real API server."""

import re

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")


def dns_label(name: str) -> str | None:
    """Check an RFC 1123 label."""
    if len(name) > 63:
        return "must be no more than 63 characters"
    if _DNS_LABEL.fullmatch(name):
        return None
    return (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
        "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    )


def dns_subdomain(name: str) -> str | None:
    if len(name) > 253:
        return "must be no more than 253 characters"
    if _DNS_SUBDOMAIN.fullmatch(name):
        return None
    return (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
        "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )


def dotless_label(name: str) -> str | None:
    """Check a name that becomes one DNS label, such as that of a Service."""
    return "must not contain dots" if "." in name else dns_label(name)


def qualified_name(key: str) -> str | None:
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or "/" in prefix):
        return (
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', with an optional DNS "
            "subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
    wrong = dns_subdomain(prefix) if slash else None
    if wrong:
        return f"prefix part {wrong}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 characters"
    if _QUALIFIED.fullmatch(name):
        return None
    return (
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    )


def label_value(value: str) -> str | None:
    if len(value) > 63:
        return "must be no more than 63 characters"
    if _LABEL_VALUE.fullmatch(value):
        return None
    return (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
        "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
        "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    )


def config_key(key: str) -> str | None:
    if _CONFIG_KEY.fullmatch(key):
        return None
    return (
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
        "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
    )
