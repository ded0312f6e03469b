"""The strings below the fields of a model describe them in its JSON schema."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, create_model
from pydantic.alias_generators import to_camel

from app.base.documented_model import DocumentedModel


class Part(DocumentedModel):
    """A part."""

    size: int
    """The size of the part."""


class Whole(DocumentedModel):
    """A whole."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    first_part: Part
    """The part that
    comes first."""
    count: Annotated[int, Field(description="Its own description.")]
    """A string that loses."""
    silent: int

    class Inner(DocumentedModel):
        count: int
        """The count of the inner class."""


class Special(Whole):
    """A special whole."""

    silent: int
    """A string of the subclass."""
    first_part: Part


def described(model: type[DocumentedModel], **options: Any) -> dict[str, Any]:
    """Return the description of each property."""
    properties = model.model_json_schema(**options)["properties"]
    return {name: schema.get("description") for name, schema in properties.items()}


def test_a_string_describes_the_field_above_it_under_its_alias() -> None:
    expected = {"firstPart": "The part that\ncomes first.", "count": "Its own description.", "silent": None}
    for mode in ("validation", "serialization"):
        assert described(Whole, mode=mode) == expected
    assert described(Whole, by_alias=False)["first_part"] == "The part that\ncomes first."


def test_the_schemas_of_parts_are_described_too() -> None:
    definitions = Whole.model_json_schema()["$defs"]
    assert definitions["Part"]["properties"]["size"]["description"] == "The size of the part."


def test_a_field_has_the_string_below_its_last_definition() -> None:
    assert described(Special) == {
        "firstPart": None,
        "count": "Its own description.",
        "silent": "A string of the subclass.",
    }


def test_classes_inside_of_others_are_found() -> None:
    class Local(DocumentedModel):
        count: int
        """The count of the local class."""

    assert described(Local) == {"count": "The count of the local class."}
    assert described(Whole.Inner) == {"count": "The count of the inner class."}


def test_a_class_without_source_has_the_strings_of_its_base() -> None:
    made = create_model("Made", __base__=Part, weight=(int, ...))
    assert described(made) == {"size": "The size of the part.", "weight": None}
