"""The span of a reconcile: in the trace of the submission, and only for a reconcile that has an effect."""

from contextlib import AbstractContextManager
from datetime import datetime

from app.telemetry import tracing
from app.telemetry.trace_context import TraceContext, continue_trace
from app.telemetry.tracing import Attributes


def reconcile_span(
    trace: TraceContext | None, about: Attributes, *, actions: int, has_effect: bool, began_at: datetime
) -> AbstractContextManager[object]:
    """Return the span of the work of a decision. Without an effect, the work only continues the trace.

    `about` has the attributes of the object.
    """
    if not has_effect:
        return continue_trace(trace)
    attributes = {**about, "jobgate.reconcile.actions": actions}
    return tracing.span("reconcile", parent=trace, attributes=attributes, began_at=began_at)
