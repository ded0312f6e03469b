"""The filters of lists as SQL conditions, without I/O.

SQL fragments are constants; values are always bound parameters.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from app.domain.access.namespaces import NamespaceSet
from app.domain.kubernetes.selectors import Operator, Requirement
from app.domain.listing import Criteria
from app.models.jobs import HAS_LABELS, JOBS_STILL_RUNNING, LABEL_KEYS

# Each value of a label is one search in the index. With more values, a search for the key finds more rows than match.
_MAX_SEARCHES: Final = 16

Search: TypeAlias = tuple[str, tuple[Any, ...]]
"""The text and the arguments of a condition that an index serves."""


class ListCondition(NamedTuple):
    """A condition on the attribute `about` of a row.

    In `text`, `{at}` stands for the alias of the table and `{}` for each argument. If no index serves `text`, then
    `search` is a condition that one serves, and that all rows with `text` fulfil.
    """

    about: str
    text: str
    arguments: tuple[Any, ...] = ()
    search: Search | None = None


class Parameters:
    """Collects the arguments of a statement, and numbers them from $1."""

    def __init__(self) -> None:
        self.arguments: list[Any] = []

    def bind(self, conditions: Iterable[ListCondition], at: str) -> str:
        """Return the conjunction of the conditions as SQL. `at` is the alias of the table."""
        return " AND ".join([self._bind(condition, at) for condition in conditions]) or "true"

    def add(self, argument: Any) -> str:
        """Add an argument and return its parameter."""
        self.arguments.append(argument)
        return f"${len(self.arguments)}"

    def _bind(self, condition: ListCondition, at: str) -> str:
        return condition.text.format(*map(self.add, condition.arguments), at=at)


def conditions(where: Criteria, *, deleted: str) -> list[ListCondition]:
    """Return the conditions of a filter. `deleted` is the column with the time of the deletion."""
    found = [_in_namespaces(where.namespaces)]
    # Deleted objects stay readable by uid, also in a list.
    if not where.uids and not where.deleted:
        found.append(ListCondition("present", f"{{at}}.{deleted} IS NULL"))
    found += [
        ListCondition(about, f"{{at}}.{text}", (value,))
        for about, text, value in (
            ("uid", "uid = ANY({}::uuid[])", list(where.uids) or None),
            ("phase", "phase = ANY({}::text[])", list(where.phases) or None),
            ("kind", "kind = ANY({}::text[])", list(where.kinds) or None),
            ("name", "name = {}", where.name),
            ("set_name", "set_name = {}", where.set_name),
            ("queue", "status -> 'queueing' ->> 'name' = {}", where.queue),
            ("created_by", "created_by = {}", where.creator_name),
            ("created_by_id", "created_by_id = {}", where.creator_id),
            ("created_at", "created_at >= {}", where.created_after),
            ("created_at", "created_at < {}", where.created_before),
            ("finished_at", "finished_at >= {}", where.finished_after),
            ("finished_at", "finished_at < {}", where.finished_before),
        )
        if value is not None
    ]
    if where.still_running:
        text = "{at}.status ? 'still_running'"
        found.append(ListCondition("still_running", text, search=(JOBS_STILL_RUNNING.replace("{at}", "{at}."), ())))
    if where.prefix is not None:
        found.append(ListCondition("prefix", "starts_with({at}.name, {})", (where.prefix,)))
    if where.search is not None:
        found.append(ListCondition("search", "strpos({at}.name, {}) > 0", (where.search,)))
    return found + list(map(_label_condition, where.labels))


def _in_namespaces(namespaces: NamespaceSet) -> ListCondition:
    if namespaces.names is None:
        # The names that begin with `kube-` are reserved, however many there are.
        text = "NOT starts_with({at}.namespace, 'kube-') AND {at}.namespace <> ALL({}::text[])"
        return ListCondition("namespace", text, (namespaces.excluded,))
    return ListCondition("namespace", "{at}.namespace = ANY({}::text[])", (namespaces.names,))


def _label_condition(requirement: Requirement) -> ListCondition:
    key, values = requirement.key, list(requirement.values)
    match requirement.operator:
        case Operator.EXISTS:
            return ListCondition("labels", "{at}.labels ? {}", (key,), _key_search(key))
        case Operator.IN if len(values) == 1:
            # Faster than an array: up to 10 000 rows are compared.
            return ListCondition("labels", "{at}.labels ->> {} = {}", (key, *values), _label_search(key, values))
        case Operator.IN:
            text = "{at}.labels ->> {} = ANY({}::text[])"
            return ListCondition("labels", text, (key, values), _label_search(key, values))
        case Operator.DOES_NOT_EXIST:
            return ListCondition("absent labels", "NOT {at}.labels ? {}", (key,))
        case Operator.NOT_IN:
            # As in Kubernetes, an object without the label matches `notin`. Its comparison is null.
            text = "({at}.labels ->> {} = ANY({}::text[])) IS NOT TRUE"
            return ListCondition("absent labels", text, (key, values))


def _label_search(key: str, values: Sequence[str]) -> Search:
    if len(values) > _MAX_SEARCHES:
        return _key_search(key)
    # The index serves containment, but no array of alternatives.
    alternatives = " OR ".join(["{at}.labels @> {}"] * len(values))
    return _with_predicate(f"({alternatives})"), tuple({key: value} for value in values)


def _key_search(key: str) -> Search:
    return _with_predicate(LABEL_KEYS.replace("{at}", "{at}.") + " ? {}"), (key,)


def _with_predicate(condition: str) -> str:
    """Return the condition with the predicate of the indexes on labels."""
    return HAS_LABELS.replace("{at}", "{at}.") + f" AND {condition}"


def searches(conditions: Sequence[ListCondition], attribute: str) -> list[ListCondition]:
    """Return the conditions on the attribute in the form that an index serves."""
    return [
        condition if condition.search is None else ListCondition(attribute, *condition.search)
        for condition in about(conditions, attribute)
    ]


def about(conditions: Sequence[ListCondition], *attributes: str) -> list[ListCondition]:
    return [condition for condition in conditions if condition.about in attributes]


def not_about(conditions: Sequence[ListCondition], *attributes: str) -> list[ListCondition]:
    return [condition for condition in conditions if condition.about not in attributes]
