"""The base class of all spec models, and the conversion of their validation errors into field errors.

Pydantic models declare the shape and the defaults of a spec and generate its JSON schema. Their errors become
`FieldError`s with exact pointers, and an unknown field gets a suggestion of the nearest known name.
"""

import types
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Self, TypeVar, Union, get_args, get_origin

from pydantic import ConfigDict, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from typing_extensions import override

from app.base.documented_model import DocumentedModel
from app.domain.errors import Problems, pointer_to
from app.domain.suggestions import add_unknown_field
from app.domain.value_types import add_wrong_type

_WRONG_TYPE: Final = {
    "int_type": "an integer",
    "float_type": "a number",
    "string_type": "a string",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
# Code, detail and what is accepted, by type of pydantic's error; the fields in braces are those of the error's context.
_WRONG_TEXT: Final = {
    "too_short": ("TooShort", "the list is too short", "{min_length} entries or more"),
    "too_long": ("InvalidValue", "the list is too long", "{max_length} entries or fewer"),
    "string_too_short": ("TooShort", "the text is too short", "{min_length} characters or more"),
    "string_too_long": ("InvalidValue", "the text is too long", "{max_length} characters or fewer"),
    "string_pattern_mismatch": ("InvalidValue", "the text has another form", "text that matches {pattern}"),
}

_Model = TypeVar("_Model", bound="SpecModel")


class SpecModel(DocumentedModel):
    """Part of a user's spec. A null is an absent field, as in Kubernetes."""

    model_config = ConfigDict(
        extra="forbid",
        # As in Kubernetes, no value is converted: "3" is not an integer.
        strict=True,
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
    )

    @override
    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return the model itself. Pydantic copies the default of a field for each spec, and models are immutable."""
        return self

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value


def read_spec(model: type[_Model], value: Any, pointer: str, problems: Problems) -> _Model | None:
    """Return the value as a model, or None if its shape is wrong. Every error is added to `problems`.

    If all errors are unknown fields, the value is read without these fields, so that the checks after this one can
    report its other errors.
    """
    try:
        return model.model_validate(value)
    except ValidationError as refused:
        errors = refused.errors(include_url=False)
    for error in errors:
        # Composing the detail of an error is slow. Beyond the limit only the number of errors is shown.
        if problems.full:
            problems.add(pointer, "TooManyErrors", "the error is counted and not listed")
        else:
            _add_error(model, error, pointer, problems)
    if any(error["type"] != "extra_forbidden" for error in errors):
        return None
    # Only unknown fields were wrong, so this validation succeeds.
    return model.model_validate(_without(value, [error["loc"] for error in errors]))


def read_in_part(model: type[_Model], value: Any) -> tuple[_Model, Sequence[tuple[str | int, ...]]] | None:
    """Return the readable part of a value of the wrong shape, and the places that were left out.

    For each error, the deepest optional field that contains it is left out. The result is None if no optional field
    contains an error.
    """
    try:
        return model.model_validate(value), ()
    except ValidationError as refused:
        errors = refused.errors(include_url=False, include_input=False)
    places = []
    for error in errors:
        place = error["loc"] if error["type"] == "extra_forbidden" else _optional_field(model, error["loc"])
        if place is None:
            return None
        places.append(place)
    return model.model_validate(_without(value, places)), places


def _optional_field(model: type[SpecModel], location: tuple[str | int, ...]) -> tuple[str | int, ...] | None:
    """Return the location of the deepest optional field that contains this location; None if there is none."""
    here: Any = model
    found = None
    for depth, step in enumerate(location, start=1):
        if isinstance(here, type) and issubclass(here, SpecModel):
            field = next(field for field in here.model_fields.values() if field.alias == step)
            if not field.is_required():
                found = location[:depth]
        here = _inside(here, step)
    return found


def _without(value: Any, locations: Sequence[tuple[str | int, ...]]) -> Any:
    """Return a copy of the value without the fields at these locations."""
    here = {location[0] for location in locations if len(location) == 1}
    below: dict[str | int, list[tuple[str | int, ...]]] = {}
    for location in locations:
        if len(location) > 1:
            below.setdefault(location[0], []).append(location[1:])
    items = enumerate(value) if isinstance(value, list) else value.items()
    kept = {key: _without(item, below[key]) if key in below else item for key, item in items if key not in here}
    return list(kept.values()) if isinstance(value, list) else kept


def _add_error(model: type[SpecModel], error: Mapping[str, Any], base: str, problems: Problems) -> None:
    location = error["loc"]
    pointer = pointer_to(base, *location)
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        add_unknown_field(problems, pointer, str(location[-1]), _fields_at(model, location[:-1]))
    elif kind == "missing":
        problems.add(pointer, "Required", "the field is required", "a value that is not null")
    elif kind in _WRONG_TYPE:
        add_wrong_type(problems, pointer, "InvalidType", _WRONG_TYPE[kind], error["input"])
    elif kind == "literal_error":
        problems.add(pointer, "InvalidValue", "the value is not one of those accepted", f"one of {context['expected']}")
    elif kind == "greater_than_equal":
        problems.add(pointer, "OutOfRange", "the number is too small", f"{context['ge']} or more")
    elif kind == "less_than_equal":
        problems.add(pointer, "OutOfRange", "the number is too large", f"{context['le']} or less")
    elif kind in _WRONG_TEXT:
        _add_wrong_text(problems, pointer, kind, context)
    else:
        problems.add(pointer, "InvalidValue", error["msg"])


def _add_wrong_text(problems: Problems, pointer: str, kind: str, context: Mapping[str, Any]) -> None:
    """Add the error of a text or list that has another length or form than accepted."""
    code, detail, accepted = _WRONG_TEXT[kind]
    if context.get("min_length") == 1:
        problems.add(pointer, code, "must not be empty", "at least 1")
    else:
        problems.add(pointer, code, detail, accepted.format(**context))


def _fields_at(model: type[SpecModel], location: Sequence[str | int]) -> Sequence[str]:
    """Return the names of the fields of the model at this location inside `model`."""
    here: Any = model
    for step in location:
        here = _inside(here, step)
    assert issubclass(here, SpecModel), "only models forbid extra fields"
    return [field.alias or name for name, field in here.model_fields.items()]


def _inside(annotation: Any, step: str | int) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, SpecModel):
        field = next(field for field in annotation.model_fields.values() if field.alias == step)
        return _bare(field.annotation)
    # The last type argument is that of the items of a list and of the values of a dict.
    return _bare(get_args(annotation)[-1])


def _bare(annotation: Any) -> Any:
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return next(member for member in get_args(annotation) if member is not type(None))
    return annotation
