"""The base class of all views, and types of fields that many of them have.

Every field is always present, null if it has no value, so that clients need not distinguish absent from null.
"""

from typing import Annotated, Self, TypeAlias

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from app.base.documented_model import DocumentedModel


class View(DocumentedModel):
    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        frozen=True,
        extra="forbid",
        json_schema_serialization_defaults_required=True,  # every field is always present
    )

    @classmethod
    def of(cls, record: object) -> Self:
        """Return the view of a record whose attributes have the names of the fields."""
        return cls.model_validate(record, from_attributes=True)


Int32: TypeAlias = Annotated[int, Field(json_schema_extra={"format": "int32"})]
NextPageToken = Annotated[
    str | None,
    Field(
        description="Null on the last page. A page with fewer items than requested, even none, can have a successor."
    ),
]
