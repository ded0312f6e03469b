"""The views of problems, and of the results of batches, which contain problems."""

from pydantic import ConfigDict, Field

from app.api.views.base import Int32, View
from app.api.views.closed_sets import ProblemCode
from app.api.views.objects import JobView, ResourceView


class _ProblemModel(View):
    """Part of a problem, which omits the fields that have no value."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)


class FieldErrorView(_ProblemModel):
    """One error of a request."""

    pointer: str
    """JSON pointer into the body, or /query/…, /header/… or /path/… for a parameter."""
    code: str
    detail: str
    accepted: str | None = None
    """What is accepted in place of the wrong value; absent if that cannot be named."""


class ProblemView(_ProblemModel):
    """An error answer: problem details of RFC 9457."""

    type: str
    title: str
    status: Int32
    detail: str
    code: ProblemCode
    """A stable code for programs. `title` and `detail` are for people and may change."""
    errors: list[FieldErrorView] = Field(default=[])
    """The errors of single fields, at most 20; absent if there are none."""


class ResourceBatchItemView(View):
    """The result of one item of a batch: the stored object, or the problem."""

    status: Int32
    """The status that a request with only this object would have got."""
    object: ResourceView | None
    problem: ProblemView | None


class BatchItemView(ResourceBatchItemView):
    """The result of one item of a batch: the stored job, or the problem."""

    object: JobView | None


class BatchView(View):
    """The results of a batch, in the order of the request."""

    items: list[BatchItemView]
