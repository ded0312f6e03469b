"""Validates the ports of a replica's Service by the rules of Kubernetes, so that no create of a Service fails later."""

from collections.abc import Sequence

from app.domain.errors import Problems, pointer_to
from app.domain.kinds.generic_job.spec import ServicePortSpec
from app.domain.kubernetes import names


def check_ports(ports: Sequence[ServicePortSpec], base: str, problems: Problems) -> None:
    named: set[str] = set()
    numbered: set[tuple[int, str]] = set()
    for index, port in enumerate(ports):
        if problems.full:
            return
        at = pointer_to(base, index)
        _check_port(port, at, problems)
        if port.name:
            if wrong := names.dns_label(port.name):
                problems.add(pointer_to(at, "name"), "InvalidName", wrong, "a DNS label")
            if port.name in named:
                problems.add(pointer_to(at, "name"), "Duplicate", "another port has this name", "a name of its own")
            named.add(port.name)
        elif len(ports) > 1:
            problems.add(
                pointer_to(at, "name"), "Required", "with more than one port, each needs a name", "a DNS label"
            )
        # TCP is Kubernetes' default.
        number = (port.port, port.protocol or "TCP")
        if number in numbered:
            problems.add(
                pointer_to(at, "port"), "Duplicate", "another port has this number and protocol", "a port of its own"
            )
        numbered.add(number)


def _check_port(port: ServicePortSpec, at: str, problems: Problems) -> None:
    if port.node_port:
        problems.add(pointer_to(at, "nodePort"), "InvalidValue", "a replica's Service has no node port", "0 or nothing")
    if port.app_protocol is not None and (wrong := names.label_key(port.app_protocol)):
        problems.add(pointer_to(at, "appProtocol"), "InvalidName", wrong, "a protocol's name, with a prefix or not")
    target, pointer = port.target_port, pointer_to(at, "targetPort")
    if isinstance(target, str) and target:
        if wrong := names.port_name(target):
            problems.add(pointer, "InvalidName", wrong, "the name of a container's port, or a number")
    # A bool is an int in Python.
    elif isinstance(target, bool) or not isinstance(target, int | str | None):
        problems.add(pointer, "InvalidType", "must be a port number or a port's name", "an integer or a string")
    elif isinstance(target, int) and not 0 <= target <= 65_535:
        problems.add(pointer, "OutOfRange", "is not a port number", "1 to 65535")
