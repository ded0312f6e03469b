"""Strategies for whole pod templates: valid ones mostly, and such in which one field has another value."""

from typing import Any, Final

from hypothesis import strategies as st

from tests.support.pod_templates.places import (
    ALTERNATIVES,
    COMPLETIONS,
    DEFINITIONS,
    PLACES,
    Template,
    complete,
    example,
    other_values,
    replaced,
    resolved,
)

_MOST_FIELDS: Final = 4  # optional fields of one object
_MOST_ITEMS: Final = 2
_MOST_DEPTH: Final = 9
# Objects of lists in which each has a name of its own.
_NAMED: Final = ("Container", "Volume", "PodResourceClaim", "EnvVar", "ContainerPort", "Sysctl")
# Fields that the API server refuses in every template, or decides by other objects of the cluster.
_LEFT_OUT: Final = {
    "PodSpec": ("overhead", "preemptionPolicy", "priorityClassName", "runtimeClassName", "serviceAccount", "priority"),
    "PersistentVolumeClaimTemplate": ("metadata",),
    "ResourceRequirements": ("claims",),
    "ObjectMeta": tuple(set(DEFINITIONS["ObjectMeta"]["properties"]) - {"labels", "annotations"}),
}


def whole_templates() -> st.SearchStrategy[Template]:
    metadata: st.SearchStrategy[Template] = st.builds(dict) | _objects("ObjectMeta", 1)
    return st.builds(lambda own, spec: _with_volumes({"metadata": own, "spec": spec}), metadata, _objects("PodSpec", 1))


@st.composite
def changed_templates(draw: st.DrawFn) -> Template:
    """A whole template in which one field has a value that may be wrong."""
    template = draw(whole_templates())
    place = draw(st.sampled_from(PLACES))
    value = draw(st.sampled_from(list(other_values(place.schema))))
    changed: Template = _with_changed(template, place.with_value(value), place.path)
    return changed


def _with_changed(template: Any, changed: Any, path: tuple[str | int, ...]) -> Any:
    """Return the template with the value at the path of `changed`, and the objects around it that it lacks."""
    if not path:
        return changed
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        is_list = isinstance(template, list) and template and isinstance(changed, list) and changed
        return replaced(template, (0,), _with_changed(template[0], changed[0], rest)) if is_list else changed
    if not isinstance(template, dict) or step not in template or not isinstance(changed, dict):
        return (
            {**template, step: changed[step]} if isinstance(template, dict) and isinstance(changed, dict) else changed
        )
    return {**template, step: _with_changed(template[step], changed[step], rest)}


def _with_volumes(template: Template) -> Template:
    """Add the volumes and the claim that the mounts, devices and claims of containers name."""
    spec = template["spec"]
    completed = COMPLETIONS["PodSpec"]
    lists = {name: [*completed[name], *(spec.get(name) or [])] for name in ("volumes", "resourceClaims")}
    lists = {name: list({item["name"]: item for item in items}.values()) for name, items in lists.items()}
    return {**template, "spec": {**spec, **lists}}


@st.composite
def _objects(draw: st.DrawFn, owner: str, depth: int) -> Template:
    declared = DEFINITIONS[owner]
    choices = ALTERNATIVES.get(owner, ())
    optional = sorted({*declared["properties"]} - {*choices} - {*_LEFT_OUT.get(owner, ())})
    optional = [name for name in optional if declared["properties"][name]]
    most = _MOST_FIELDS if depth < _MOST_DEPTH else 0
    some = st.lists(st.sampled_from(optional), max_size=most, unique=True)
    chosen = draw(some) if optional else []
    if choices:
        chosen += draw(st.lists(st.sampled_from(choices), max_size=1))
    fields = {name: draw(_values(owner, name, depth + 1)) for name in chosen}
    if owner == "PodSpec":
        fields["containers"] = draw(_values(owner, "containers", depth + 1))
    return complete(owner, fields)


def _values(owner: str, field: str, depth: int) -> st.SearchStrategy[Any]:
    name, schema = resolved(DEFINITIONS[owner]["properties"][field])
    if "properties" in schema:
        return _objects(name, depth)
    if schema.get("type") == "array":
        item = resolved(schema["items"])[0]
        if item:
            most = _MOST_ITEMS if depth < _MOST_DEPTH else 1
            least = schema.get("minItems", 0)
            return st.lists(_objects(item, depth), min_size=least, max_size=most).map(lambda found: _named(found, item))
    usual = st.just(example(owner, field))
    if "enum" in schema:
        return usual | st.sampled_from(schema["enum"])
    if schema.get("type") == "boolean":
        return st.booleans()
    if schema.get("type") == "integer":
        return usual | st.integers(schema.get("minimum", 0), min(schema.get("maximum", 99), 99))
    return usual


def _named(found: list[Template], item: str) -> list[Template]:
    if item not in _NAMED:
        return found
    return [{**one, "name": f"{item[0].lower()}{index}"} for index, one in enumerate(found)]
