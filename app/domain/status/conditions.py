"""Conditions of an object: how they change with what holds."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from app.domain.status.records import Condition
from app.domain.vocabulary import ConditionType

Wanted: TypeAlias = Mapping[ConditionType, tuple[bool, str, str]]
"""Whether each condition holds, with its reason and message."""


def merge_conditions(
    before: Sequence[Condition],
    wanted: Wanted,
    now: datetime,
    generation: int,
    *,
    followed: Collection[ConditionType],
) -> tuple[Condition, ...]:
    """Return the wanted conditions. A condition keeps its time, reason and message until its status changes.

    Conditions of `followed` always get the wanted reason and message, since the obstacle that they describe can change
    while their status stays.
    """
    known = {condition.type: condition for condition in before}
    conditions: list[Condition] = []
    for type_, (holds, reason, message) in wanted.items():
        state = str(holds)
        old = known.get(type_)
        if old is not None and old.status == state:
            conditions.append(replace(old, reason=reason, message=message) if type_ in followed else old)
            continue
        conditions.append(
            Condition(
                type=type_,
                status=state,
                reason=reason,
                message=message,
                last_transition_at=now,
                observed_generation=generation,
            )
        )
    return tuple(conditions)
