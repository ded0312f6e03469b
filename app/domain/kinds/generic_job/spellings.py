"""Replaces the spellings of GenericJob's older API documentation by the current ones, before the spec is checked.

replicasSpec -> replicaSpecs                 runMode.*.enable -> enabled
ranks as strings -> integers                 restartPolicy: OnFailure -> {policy: OnFailure}
{replicas: {worker: [0]}} -> {worker: [0]}   successRules: {rules: [...]} -> [...]
"""

from typing import Any, Final

from app.domain.errors import Problems, pointer_to
from app.domain.kinds.spec.spelling import Spelling

_RULE_LISTS: Final = ("successRules", "failureRules")
_RULE_WRAPPERS: Final = ("replicas", "ranks")


def current_spelling(spec: Any, base: str, problems: Problems) -> Spelling:
    """Return the posted spec in the current spelling. Two spellings of one field with different values are an error."""
    if not isinstance(spec, dict):
        return Spelling(spec)
    spec = dict(spec)
    moved: dict[str, str] = {}
    _rename(spec, "replicasSpec", "replicaSpecs", base, moved, problems)
    for name in _RULE_LISTS:
        if name in spec:
            spec[name] = _rules(spec[name], f"{base}/{name}", moved)
    if isinstance(spec.get("replicaSpecs"), list):
        spec["replicaSpecs"] = _replica_specs(spec["replicaSpecs"], f"{base}/replicaSpecs", moved)
    if isinstance(spec.get("runMode"), dict):
        spec["runMode"] = _run_mode(spec["runMode"], f"{base}/runMode", moved, problems)
    return Spelling(spec, moved)


def _rename(owner: dict[str, Any], old: str, new: str, base: str, moved: dict[str, str], problems: Problems) -> None:
    if old not in owner:
        return
    value = owner.pop(old)
    if owner.get(new) not in (None, value):
        at = pointer_to(base, old)
        problems.add(at, "Conflict", f'this is the older spelling of "{new}", which is given too and differs', new)
        return
    owner[new] = value
    moved[pointer_to(base, new)] = pointer_to(base, old)


def _run_mode(mode: dict[str, Any], base: str, moved: dict[str, str], problems: Problems) -> dict[str, Any]:
    changed = dict(mode)
    for name in ("debug", "pause"):
        if isinstance(changed.get(name), dict):
            changed[name] = dict(changed[name])
            _rename(changed[name], "enable", "enabled", pointer_to(base, name), moved, problems)
    return changed


def _replica_specs(items: list[Any], base: str, moved: dict[str, str]) -> list[Any]:
    written = moved.get(base, base)
    changed = list(items)
    for index, item in enumerate(items):
        if isinstance(item, dict) and isinstance(item.get("restartPolicy"), str):
            changed[index] = {**item, "restartPolicy": {"policy": item["restartPolicy"]}}
            moved[pointer_to(base, index, "restartPolicy", "policy")] = pointer_to(written, index, "restartPolicy")
    return changed


def _rules(rules: Any, base: str, moved: dict[str, str]) -> Any:
    if isinstance(rules, dict) and set(rules) == {"rules"}:
        moved[base] = pointer_to(base, "rules")
        rules = rules["rules"]
    if not isinstance(rules, list):
        return rules
    # If the list itself was posted under another name, the pointers to its entries begin with that name.
    written = moved.get(base, base)
    changed = []
    for index, rule in enumerate(rules):
        wrapper = _wrapper(rule)
        if wrapper:
            moved[pointer_to(base, index)] = pointer_to(written, index, wrapper)
        changed.append(_rule(rule[wrapper] if wrapper else rule))
    return changed


def _wrapper(rule: Any) -> str | None:
    """Return the name of the older wrapper of a rule, or None.

    A type can have the same name, but its value is a list.
    """
    if not isinstance(rule, dict) or len(rule) != 1:
        return None
    (name,) = rule
    return name if name in _RULE_WRAPPERS and isinstance(rule[name], dict) else None


def _rule(rule: Any) -> Any:
    return {task: _ranks(ranks) for task, ranks in rule.items()} if isinstance(rule, dict) else rule


def _ranks(ranks: Any) -> Any:
    if not isinstance(ranks, list):
        return ranks
    return [int(rank) if isinstance(rank, str) and _is_rank(rank) else rank for rank in ranks]


def _is_rank(text: str) -> bool:
    # Other texts stay as they are, for the check of their type to report.
    return text.isascii() and text.isdecimal() and len(text) <= 10
