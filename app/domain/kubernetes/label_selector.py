"""A LabelSelector, as fields of objects have it. `selectors` parses those that kubectl writes."""

from collections.abc import Mapping

import msgspec

from app.domain.kubernetes.selectors import Operator, Requirement, matches


class LabelExpression(msgspec.Struct, frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The labels that an object must have. One without requirements selects every object."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelExpression, ...] = ()

    def selects(self, labels: Mapping[str, str] | None) -> bool | None:
        """Return whether it selects an object with these labels.

        None if that is not known: the labels are None, or a later version of Kubernetes has added an operator.
        """
        if self == LabelSelector():
            return True
        if labels is None or any(item.operator not in set(Operator) for item in self.match_expressions):
            return None
        pairs = self.match_labels.items()
        equal = [Requirement(key=key, operator=Operator.IN, values=(value,)) for key, value in pairs]
        others = [
            Requirement(key=item.key, operator=Operator(item.operator), values=item.values)
            for item in self.match_expressions
        ]
        return matches([*equal, *others], labels)
