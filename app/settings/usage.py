"""Settings of usage: by which labels it is added up, and what it costs."""

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from app.domain.errors import Problems
from app.domain.kinds.spec.model import SpecModel, read_spec
from app.domain.usage.prices import Prices
from app.domain.usage.query import LABEL, is_dimension
from app.settings.documents import read_document
from app.settings.keeping import KeepingSettings
from app.settings.serving import Names

_MOST_LABELS = 8  # each has a value in the rows of each group


def _exact(value: object) -> object:
    """Return a number, or the text of one, as it is written."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return value
    try:
        return Decimal(str(value))
    except InvalidOperation:
        raise ValueError("it is no number") from None


class _PriceList(SpecModel):
    currency: Annotated[str, Field(min_length=1, max_length=16)]
    hourly: dict[str, Annotated[Decimal, BeforeValidator(_exact), Field(ge=0, le=10**9)]]


class UsageSettings(KeepingSettings):
    """How usage is added up, and what it costs."""

    usage_labels: Annotated[
        Names,
        Field(
            description=f"comma-separated keys of labels by which usage is added up, {_MOST_LABELS} at most; every "
            "process needs it, also those that only serve requests"
        ),
    ] = ()
    prices_file: Annotated[
        str | None, Field(description="YAML with a currency and the hourly prices of resources, for the cost of usage")
    ] = None

    @field_validator("usage_labels")
    @classmethod
    def _are_keys(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [key for key in value if not is_dimension(LABEL + key)]
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: expected keys of labels, such as team or example.com/project")
        if len(value) > _MOST_LABELS:
            raise ValueError(f"{len(value)} keys; accepted: {_MOST_LABELS} at most")
        return value

    @field_validator("prices_file")
    @classmethod
    def _has_prices(cls, value: str | None) -> str | None:
        # Read at the start too, so that a file that is not valid stops the process and not a request.
        _prices(value)
        return value

    def prices(self) -> Prices | None:
        return _prices(self.prices_file)


def _prices(path: str | None) -> Prices | None:
    return read_document(path, _prices_of) if path else None


def _prices_of(document: Any) -> Prices:
    problems = Problems()
    found = read_spec(_PriceList, document, "", problems)
    problems.raise_if_any("the price list is not valid")
    assert found is not None, "without a problem there is a price list"
    return Prices(currency=found.currency, hourly=found.hourly)
