"""Checks the syntax of Kubernetes names and labels. Each check returns None, or the error message of Kubernetes."""

import re

# staging/src/k8s.io/apimachinery/pkg/util/validation/validation.go and .../api/validate/content/*.go
DNS_LABEL_MAX = 63
DNS_SUBDOMAIN_MAX = 253
LABEL_VALUE_MAX = 63
LABEL_NAME_MAX = 63
PORT_NAME_MAX = 15
# staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go: all keys and values of one object together.
ANNOTATIONS_MAX_BYTES = 256 * 1024
# A StatefulSet's pods get "-<ordinal>" and a revision hash of ten characters as a label of 63.
STATEFUL_SET_NAME_MAX = 52

_LABEL_FORMAT = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
# The same with its maximum length, for the OpenAPI document.
DNS_LABEL_PATTERN = f"^[a-z0-9]([-a-z0-9]{{0,{DNS_LABEL_MAX - 2}}}[a-z0-9])?$"
_SUBDOMAIN_FORMAT = rf"{_LABEL_FORMAT}(\.{_LABEL_FORMAT})*"
DNS_SUBDOMAIN_PATTERN = f"^{_SUBDOMAIN_FORMAT}$"
_DNS_1035_FORMAT = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED_FORMAT = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE_FORMAT = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_CONFIG_KEY_FORMAT = "[-._a-zA-Z0-9]+"

_LABEL = re.compile(_LABEL_FORMAT)
_SUBDOMAIN = re.compile(_SUBDOMAIN_FORMAT)
_DNS_1035 = re.compile(_DNS_1035_FORMAT)
_QUALIFIED = re.compile(_QUALIFIED_FORMAT)
_LABEL_VALUE = re.compile(_LABEL_VALUE_FORMAT)
_CONFIG_KEY = re.compile(_CONFIG_KEY_FORMAT)
_PORT_NAME = re.compile("[-a-z0-9]+")
_PRINTABLE_BUT_EQUALS = re.compile("[ -<>-~]+")


def dns_label(name: str) -> str | None:
    """Check a container, volume, namespace name: an RFC 1123 label."""
    if _too_long(name, DNS_LABEL_MAX):
        return _must_be_short(DNS_LABEL_MAX)
    if _LABEL.fullmatch(name):
        return None
    if _SUBDOMAIN.fullmatch(name):
        return "must not contain dots"
    return _explain(
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character",
        _LABEL_FORMAT,
        "my-name",
        "123-abc",
    )


def dns_subdomain(name: str) -> str | None:
    """Check the name of most objects (pods, ConfigMaps, service accounts): an RFC 1123 subdomain."""
    if _too_long(name, DNS_SUBDOMAIN_MAX):
        return _must_be_short(DNS_SUBDOMAIN_MAX)
    if _SUBDOMAIN.fullmatch(name):
        return None
    return _explain(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
        "and must start and end with an alphanumeric character",
        _SUBDOMAIN_FORMAT,
        "example.com",
    )


def dns_1035_label(name: str) -> str | None:
    """Check the name of a Service."""
    if _too_long(name, DNS_LABEL_MAX):
        return _must_be_short(DNS_LABEL_MAX)
    if _DNS_1035.fullmatch(name):
        return None
    return _explain(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
        "start with an alphabetic character, and end with an alphanumeric character",
        _DNS_1035_FORMAT,
        "my-name",
        "abc-123",
    )


def label_key(key: str) -> str | None:
    """Check the key of a label: a name, behind an optional DNS prefix and a slash."""
    prefix, slash, name = key.rpartition("/")
    if slash:
        if not prefix:
            return "prefix part must be non-empty"
        wrong = "must not contain more than one '/'" if "/" in prefix else dns_subdomain(prefix)
        if wrong:
            return f"prefix part {wrong}"
    if not name:
        return "name part must be non-empty"
    if _too_long(name, LABEL_NAME_MAX):
        return f"name part {_must_be_short(LABEL_NAME_MAX)}"
    if _QUALIFIED.fullmatch(name):
        return None
    return "name part " + _explain(
        "must consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character",
        _QUALIFIED_FORMAT,
        "MyName",
        "my.name",
        "123-abc",
    )


def annotation_key(key: str) -> str | None:
    """Check the key of an annotation like that of a label, but without regard to upper and lower case."""
    return label_key(key.lower())


def label_value(value: str) -> str | None:
    if _too_long(value, LABEL_VALUE_MAX):
        return _must_be_short(LABEL_VALUE_MAX)
    if _LABEL_VALUE.fullmatch(value):
        return None
    return _explain(
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character",
        _LABEL_VALUE_FORMAT,
        "MyValue",
        "my_value",
        "12345",
    )


def port_name(name: str) -> str | None:
    """Check the name of a port: an IANA_SVC_NAME."""
    if _too_long(name, PORT_NAME_MAX):
        return _must_be_short(PORT_NAME_MAX)
    if not _PORT_NAME.fullmatch(name):
        return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", name):
        return "must contain at least one letter (a-z)"
    if "--" in name:
        return "must not contain consecutive hyphens"
    if name[0] == "-" or name[-1] == "-":
        return "must not begin or end with a hyphen"
    return None


def env_name(name: str) -> str | None:
    """Check the name of an environment variable, as Kubernetes does since it relaxed the rule in 1.34."""
    if not name:
        return "environment variable name must be non-empty"
    if _PRINTABLE_BUT_EQUALS.fullmatch(name):
        return None
    return "a valid environment variable name must consist only of printable ASCII characters other than '='"


def config_key(key: str) -> str | None:
    """Check a key of a ConfigMap or Secret."""
    if _too_long(key, DNS_SUBDOMAIN_MAX):
        return _must_be_short(DNS_SUBDOMAIN_MAX)
    if key == "." or key.startswith(".."):
        return "must not be '.' or begin with '..'"
    if _CONFIG_KEY.fullmatch(key):
        return None
    return _explain(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        _CONFIG_KEY_FORMAT,
        "key.name",
        "KEY_NAME",
        "key-name",
    )


def _too_long(text: str, limit: int) -> bool:
    return len(text) > limit


def _must_be_short(limit: int) -> str:
    return f"must be no more than {limit} characters"


def _explain(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}'" for example in examples)
    return f"{message} (e.g. {shown}, regex used for validation is '{pattern}')"
