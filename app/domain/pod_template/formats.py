"""The formats of texts in a pod template. The schema names them, and errors explain them.

Each check follows pkg/apis/core/validation/validation.go of the API server, and returns None for a valid text.
An empty text has every format: the schema says where a text must not be empty.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.domain.kubernetes import names
from app.domain.pod_template.reading import NAME_ACCEPTED

RELATIVE: Final = "a relative path without '..'"
_SYSCTL_MAX: Final = 253
_CSI_DRIVER_MAX: Final = 63
_HOST_NAME_MAX: Final = 64  # of the Linux kernel
_QUOBYTE_TENANT_MAX: Final = 65
_GMSA_SPEC_MAX: Final = 64 * 1024

_HEADER = re.compile("[-A-Za-z0-9]+")
_SYSCTL_SEGMENT = "[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?"
_SYSCTL = re.compile(rf"(?:{_SYSCTL_SEGMENT}[./])*{_SYSCTL_SEGMENT}")
_ISCSI = re.compile(
    r"iqn\.[0-9]{4}-[0-9]{2}\.[A-Za-z0-9.-]+:[^,;*&$|\t\n\f\r ]+|eui.[A-Za-z0-9]{16}|naa.[A-Za-z0-9]{32}"
)
_RESOURCE = re.compile(r"(?:limits|requests)\.(?:cpu|memory|ephemeral-storage|hugepages-.*)")
_HOST_AND_PORT = re.compile(r"(?:[^:\[\]]*|\[[^\[\]]*\]):[^:\[\]]*")
# Windows separates a domain from a user by a backslash.
_WINDOWS_USER = re.compile(r'(?:[^\\/:*?"<>|\x00-\x1f]{1,256}\\)?(?![. ]+$)[^"/\\\[\]:;|=,+*?<>@\x00-\x1f]{1,104}')


@dataclass(frozen=True, slots=True)
class Format:
    check: Callable[[str], str | None]
    accepted: str


def relative_path(path: str) -> str | None:
    """Check a path inside a directory."""
    return "the path must be relative" if path.startswith("/") else no_backsteps(path)


def no_backsteps(path: str) -> str | None:
    return "the path must not contain '..'" if ".." in path.split("/") else None


def _file_in_volume(path: str) -> str | None:
    # The kubelet keeps its own files in the volume under such names.
    return relative_path(path) or ("the path must not begin with '..'" if path.startswith("..") else None)


def _host_name(name: str) -> str | None:
    if len(name) > _HOST_NAME_MAX:
        return f"must be no more than {_HOST_NAME_MAX} characters"
    return names.dns_subdomain(name)


def _csi_driver(name: str) -> str | None:
    if len(name) > _CSI_DRIVER_MAX:
        return f"must be no more than {_CSI_DRIVER_MAX} characters"
    return names.dns_subdomain(name.lower())


def _search_domain(name: str) -> str | None:
    # A single dot is the root domain. A dot at the end makes a domain absolute, and an underscore is no host name.
    return None if name == "." else names.dns_subdomain(name.removesuffix(".").replace("_", "-"))


def _matching(pattern: re.Pattern[str], detail: str, most: int = 2**63) -> Callable[[str], str | None]:
    return lambda text: None if len(text) <= most and pattern.fullmatch(text) else detail


def _signer(text: str) -> str | None:
    domain, slash, path = text.partition("/")
    if not slash or "." not in domain:
        return "this is no domain with a name behind it"
    return next(filter(None, map(names.dns_label, domain.split("."))), None) or names.dns_subdomain(path)


def _registry(text: str) -> str | None:
    is_valid = all(_HOST_AND_PORT.fullmatch(pair) for pair in text.split(","))
    return None if is_valid else "this is no list of hosts with ports"


FORMATS: Final[dict[str, Format]] = {
    "dns-subdomain": Format(names.dns_subdomain, "the name of an object"),
    # The API server checks the names of envFrom as if it added random characters to them.
    "dns-subdomain-prefix": Format(
        lambda name: names.dns_subdomain(re.sub("(?<=.)-$", "a", name)), "the name of an object"
    ),
    "dns-label": Format(names.dns_label, NAME_ACCEPTED),
    "env-name": Format(names.env_name, "the name of an environment variable"),
    "host-name": Format(_host_name, "a domain name of at most 64 characters"),
    "search-domain": Format(_search_domain, "a domain name, such as svc.cluster.local"),
    "relative-path": Format(relative_path, RELATIVE),
    "file-in-volume": Format(_file_in_volume, RELATIVE),
    "path-without-backsteps": Format(no_backsteps, "a path without '..'"),
    "unpadded-text": Format(
        lambda text: "the text begins or ends with white space" if text != text.strip() else None,
        "a text without white space at its ends",
    ),
    "without-slash": Format(lambda text: "the name contains '/'" if "/" in text else None, "a name without '/'"),
    "header-name": Format(_matching(_HEADER, "this is no name of an HTTP header"), "letters, digits and '-'"),
    "sysctl": Format(
        _matching(_SYSCTL, "this is no name of a kernel parameter", _SYSCTL_MAX),
        "lower case letters, digits, '-' and '_', in parts between '.' or '/'",
    ),
    "iscsi-name": Format(
        _matching(_ISCSI, "this is no name of iSCSI"), "iqn.2001-04.com.example:storage, or one of eui. or naa."
    ),
    "csi-driver": Format(_csi_driver, "the name of a CSI driver, at most 63 characters"),
    "signer": Format(_signer, "the name of a signer, such as example.com/signer-name"),
    "quobyte-registry": Format(_registry, "host:port, or several with commas between them"),
    "quobyte-tenant": Format(
        lambda text: "the tenant is too long" if len(text) > _QUOBYTE_TENANT_MAX else None,
        f"at most {_QUOBYTE_TENANT_MAX} characters",
    ),
    "container-resource": Format(
        _matching(_RESOURCE, "a container has no such resource"),
        "limits.cpu, limits.memory, requests.cpu, requests.memory or the like",
    ),
    "windows-user": Format(_matching(_WINDOWS_USER, "this is no name of a user of Windows"), "user or DOMAIN\\user"),
    "gmsa-spec": Format(
        lambda text: None if len(text) <= _GMSA_SPEC_MAX else "the text is too long",
        f"at most {_GMSA_SPEC_MAX} characters",
    ),
}
