"""ResourceQuota: the usage of a namespace, and the check of a new pod against it."""

from decimal import Decimal

from devcluster.errors import forbidden
from devcluster.formats.objects import Object, is_terminal, meta, spec, status
from devcluster.formats.quantity import Amounts, add, amounts, pod_amounts, render
from devcluster.registry.store import ObjectStore
from devcluster.resources import PODS, QUOTAS

_COMPUTE = ("cpu", "memory", "ephemeral-storage")


def charge(pod: Object) -> Amounts:
    """Return all amounts that a quota can count for one pod."""
    found: Amounts = {"pods": Decimal(1), "count/pods": Decimal(1)}
    for name, amount in pod_amounts(pod, "requests").items():
        found[f"requests.{name}"] = amount
        if name in _COMPUTE:
            found[name] = amount
    for name, amount in pod_amounts(pod, "limits").items():
        found[f"limits.{name}"] = amount
    return found


def usage(store: ObjectStore, namespace: str) -> Amounts:
    total: Amounts = {}
    for record in store.iterate(PODS, namespace):
        if not is_terminal(record.object):
            total = add(total, charge(record.object))
    return total


def check(store: ObjectStore, namespace: str, pod: Object) -> None:
    """Raise Forbidden if the pod would exceed a quota of its namespace."""
    # As in a real API server, a quota applies once its controller has copied the limits into the status.
    quotas = [record for record in store.list_records(QUOTAS, namespace) if status(record.object).get("hard")]
    if not quotas:
        return
    used, asked = usage(store, namespace), charge(pod)
    for record in quotas:
        refusal = _refusal(record.name, amounts(status(record.object)["hard"]), used, asked, pod)
        if refusal:
            raise forbidden("pods", str(meta(pod).get("name", "")), refusal)


def _refusal(quota: str, hard: Amounts, used: Amounts, asked: Amounts, pod: Object) -> str:
    missing = [name for name in sorted(hard) if _must_be_given(name) and name not in asked]
    if missing:
        containers = ",".join(sorted(str(item.get("name")) for item in spec(pod).get("containers") or []))
        listed = "; ".join(f"{name} for: {containers}" for name in missing)
        return f"failed quota: {quota}: must specify {listed}"
    zero = Decimal(0)
    over = sorted(name for name in hard if asked.get(name, zero) and used.get(name, zero) + asked[name] > hard[name])
    if not over:
        return ""
    requested = ",".join(f"{name}={render(asked[name])}" for name in over)
    taken = ",".join(f"{name}={render(used.get(name, zero))}" for name in over)
    limited = ",".join(f"{name}={render(hard[name])}" for name in over)
    return f"exceeded quota: {quota}, requested: {requested}, used: {taken}, limited: {limited}"


def _must_be_given(name: str) -> bool:
    # As in Kubernetes, a quota of CPU or memory requires that each pod states its own.
    return name.rpartition(".")[2] in ("cpu", "memory") and "/" not in name
