"""The strategy of StatefulSets: defaults, validation, and the few fields that may change."""

from collections.abc import Iterator

from typing_extensions import override

from devcluster.errors import FieldCause, forbidden_field, invalid_value, required, unsupported
from devcluster.formats.objects import Object, labels, spec
from devcluster.formats.selectors import selects
from devcluster.strategies.base import Strategy
from devcluster.strategies.pod_spec import validate_spec
from devcluster.strategies.pods import default_template_spec

_POLICIES = ("OrderedReady", "Parallel")
_MUTABLE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_FROZEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


class StatefulSetStrategy(Strategy):
    split_status = True

    @override
    def prepare_create(self, obj: Object) -> None:
        # The status of a client is dropped. A real API server writes these two fields even if they are 0.
        obj["status"] = {"replicas": 0, "availableReplicas": 0}

    @override
    def default(self, obj: Object) -> None:
        found = obj.setdefault("spec", {})
        found.setdefault("replicas", 1)
        found.setdefault("serviceName", "")
        found.setdefault("podManagementPolicy", "OrderedReady")
        found.setdefault("revisionHistoryLimit", 10)
        strategy = found.setdefault("updateStrategy", {})
        strategy.setdefault("type", "RollingUpdate")
        if strategy["type"] == "RollingUpdate":
            strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
        retention = found.setdefault("persistentVolumeClaimRetentionPolicy", {})
        retention.setdefault("whenDeleted", "Retain")
        retention.setdefault("whenScaled", "Retain")
        default_template_spec(found.setdefault("template", {}).setdefault("spec", {}))

    @override
    def validate(self, obj: Object) -> list[FieldCause]:
        return list(_causes(spec(obj)))

    @override
    def validate_update(self, new: Object, old: Object) -> list[FieldCause]:
        causes = self.validate(new)
        fields = spec(new).keys() | spec(old).keys()
        if any(spec(new).get(name) != spec(old).get(name) for name in fields - set(_MUTABLE)):
            causes.append(forbidden_field("spec", _FROZEN))
        return causes


def _causes(found: Object) -> Iterator[FieldCause]:
    policy = found.get("podManagementPolicy", "")
    if policy not in _POLICIES:
        yield invalid_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    replicas = found.get("replicas", 1)
    if replicas < 0:
        yield invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
    selector = found.get("selector")
    if selector is None:
        yield required("spec.selector")
    yield from _template_causes(found, selector)


def _template_causes(found: Object, selector: Object | None) -> Iterator[FieldCause]:
    template = found.get("template") or {}
    given = labels(template)
    if selector is None or not selects(selector, given):
        shown = "{" + ",".join(f'"{key}":"{given[key]}"' for key in sorted(given)) + "}" if given else "null"
        why = f"Invalid value: {shown}: `selector` does not match template `labels`"
        yield FieldCause("FieldValueInvalid", why, "spec.template.metadata.labels")
    for cause in validate_spec(spec(template)):
        yield FieldCause(cause.reason, cause.message, f"spec.template.{cause.field}")
    restart = spec(template).get("restartPolicy", "Always")
    # `validate_spec` has reported every other wrong value.
    if restart in ("Never", "OnFailure"):
        yield unsupported("spec.template.spec.restartPolicy", restart, ("Always",))
