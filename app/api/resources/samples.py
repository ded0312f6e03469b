"""The resource of a sample kind. Its views, routes and documentation are derived from the kind."""

import inspect
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, create_model
from typing_extensions import override

from app.api.answers.conditional import status_tag, whole_tag
from app.api.answers.rendering import as_submitted, condition_view, identity, submission
from app.api.answers.responses import json_bytes
from app.api.requests.dependencies import Api
from app.api.resources.resource import CurrentStatus, DryRunChecks, Examples, Model, Models, Resource
from app.api.shared.job_views import Rendered, Representation
from app.api.views.base import NextPageToken, View
from app.api.views.dry_runs import ResourceDryRunList, ResourceDryRunView
from app.api.views.objects import (
    CommonStatusView,
    JobWarningView,
    ResourceHistoryView,
    ResourceStatusView,
    ResourceView,
    ResourceWatchEventView,
)
from app.api.views.problems import ResourceBatchItemView
from app.api.views.summaries import CountsView, KindCountView, PhaseCountView, ResourceSummaryView
from app.db.samples.rows import SampleRow
from app.domain.cluster_check import ClusterCheck
from app.domain.kinds.sample_kind import Facts, Figures, SampleKind
from app.domain.listing import Criteria
from app.domain.plan import Manifest
from app.fairness.share import next_slice
from app.services.editing.redaction import SampleRedactor
from app.services.editing.samples import SampleEditor
from app.services.gateway import Services
from app.services.reading.manifests import Sampler
from app.services.reading.objects import Address
from app.services.reading.queues import QueueCheck
from app.services.reading.samples import SampleReader
from app.services.submitting.samples import PreparedSample, SampleSubmitter


class SampleResource(Resource):
    """The objects of one kind. They are few, so each request that needs a body renders it."""

    def __init__(self, kind: SampleKind) -> None:
        self.kind = kind
        self.name = kind.resource
        self.operation_noun = kind.word
        self.noun = kind.name
        self.event = kind.name.lower()
        self.description = f"Submit, list, read, edit and delete {kind.name}s."
        self.phases = kind.phases
        self.is_about_set = kind.is_about_set
        self.batch_operation = f"submit_{kind.word}_batch"
        self.models = _models(kind)
        self.examples = Examples(manifest=kind.example, patch=kind.example_patch)

    @override
    def reading(self, services: Services) -> SampleReader:
        return services.samples[self.name].reading

    @override
    def submitter(self, services: Services) -> SampleSubmitter:
        return services.samples[self.name].submitter

    @override
    def editor(self, services: Services) -> SampleEditor:
        return services.samples[self.name].editor

    @override
    def redactor(self, services: Services) -> SampleRedactor:
        return services.samples[self.name].redactor

    @override
    def created_bytes(self, prepared: PreparedSample) -> bytes:
        return json_bytes(self.view_of(prepared.new.row))

    @override
    async def read(self, api: Api, address: Address, representation: Representation) -> Rendered:
        row = await self.reading(api.services).row(address)
        if representation is Representation.WHOLE:
            return await self.render(api, row)
        tag = status_tag(row.uid, row.version)
        return Rendered(row.namespace, row.uid, row.version, tag, lambda: json_bytes(self.status_of(row)))

    @override
    async def render(self, api: Api, row: SampleRow) -> Rendered:
        tag = whole_tag(row.uid, row.version)
        return Rendered(row.namespace, row.uid, row.version, tag, lambda: json_bytes(self.view_of(row)))

    @override
    async def whole_views(self, api: Api, rows: Sequence[SampleRow]) -> AsyncGenerator[bytes, None]:
        for row in rows:
            yield json_bytes(self.view_of(row))
            await next_slice()

    @override
    def summary_bytes(self, row: SampleRow) -> bytes:
        return json_bytes(
            self.models.summary(**identity(row), **submission(row), labels=row.labels, status=self._state(row))
        )

    @override
    async def statuses(self, services: Services, uids: Collection[UUID]) -> Mapping[UUID, CurrentStatus]:
        page = await self.reading(services).summary_page(Criteria(uids=sorted(uids)), None, len(uids))
        return {
            row.uid: CurrentStatus(self.status_of(row), row.namespace, row.version, row.is_settled) for row in page.rows
        }

    @override
    async def dry_run_bytes(self, prepared: PreparedSample, checks: DryRunChecks, sampler: Sampler) -> bytes:
        row = prepared.new.row
        warnings = _warnings(self.kind, row.manifest, row.record)
        return json_bytes(ResourceDryRunView(dry_run=True, manifest=row.manifest, warnings=warnings))

    @override
    async def cluster_checks(
        self, services: Services, prepared: Sequence[PreparedSample], token_id: str
    ) -> Sequence[ClusterCheck | None]:
        return [None] * len(prepared)  # the controller determines their objects

    @override
    async def queue_checks(
        self, services: Services, namespace: str, prepared: Sequence[PreparedSample], gang_apis: Collection[str] | None
    ) -> Sequence[QueueCheck | None]:
        return [None] * len(prepared)

    def view_of(self, row: SampleRow) -> BaseModel:
        """Return the whole view of an object."""
        native, details = self.kind.native_status(row.record), _values_of(self.kind.make_details(row.record))
        return self.models.view(**self._status(row), **as_submitted(row), native_status=native, **details)

    def status_of(self, row: SampleRow) -> BaseModel:
        """Return the view of an object without its spec and native status."""
        return self.models.status(**self._status(row))

    def _status(self, row: SampleRow) -> dict[str, Any]:
        conditions = [condition_view(condition) for condition in row.status.conditions]
        return {**identity(row), "status": self._state(row), "conditions": conditions}

    def _state(self, row: SampleRow) -> dict[str, Any]:
        facts = Facts(
            manifest=row.manifest,
            record=row.record,
            cache_observed_at=row.cache_observed_at,
            deleted=row.deleted_at is not None,
            gone=row.gone_at is not None,
        )
        return {
            "phase": row.phase,
            "reason": row.reason,
            "message": row.message,
            "observed_generation": row.observed_generation,
            "started_at": row.status.started_at,
            "finished_at": row.status.finished_at,
            "observed_at": row.observed_at,
            "warnings": _warnings(self.kind, row.manifest, row.record),
            **_values_of(self.kind.make_figures(facts)),
        }


def _warnings(kind: SampleKind, manifest: Manifest, record: Any) -> list[JobWarningView]:
    return [JobWarningView.of(warning) for warning in kind.warnings(manifest, record)]


def _values_of(figures: Figures) -> dict[str, Any]:
    return {name: getattr(figures, name) for name in type(figures).model_fields}


# Cached, because two classes with the same name would be two schemas of the OpenAPI document.
@cache
def _models(kind: SampleKind) -> Models:
    """Return the models of the answers about the kind: the common ones, with the phases and figures of the kind."""
    name = kind.name
    figures, details = _typed_fields(kind.figures), _typed_fields(kind.details)
    phase = (kind.phases, ...)
    own_kind = (Annotated[str, Field(json_schema_extra={"const": name})], ...)
    about = f"The status of a {name}."
    state = _derive(f"{name}StateView", CommonStatusView, about, phase=phase, **figures)
    about = f"A {name} without its spec and native status. This is the cheapest representation to poll."
    status = _derive(f"{name}StatusView", ResourceStatusView, about, kind=own_kind, status=(state, ...))
    about = inspect.cleandoc(type(kind).__doc__ or f"A {name}.")
    view = _derive(f"{name}View", ResourceView, about, kind=own_kind, status=(state, ...), **details)
    about = f"What a table of {name}s shows: an object without its manifest, conditions and native status."
    summary = _derive(f"{name}SummaryView", ResourceSummaryView, about, kind=own_kind, status=(state, ...))
    about = f"One entry of the history of a {name}. Its task, rank and attempt are null."
    entry = _derive(f"{name}HistoryView", ResourceHistoryView, about, phase=phase)
    about = f"A {name} that was stored, or the reason why it was not."
    item = _derive(f"{name}BatchItemView", ResourceBatchItemView, about, object=(view | None, ...))
    about = f"The data of a server-sent event `{name.lower()}`."
    event = _derive(f"{name}WatchEventView", ResourceWatchEventView, about, object=(status, ...))
    return Models(
        view=view,
        status=status,
        page=_page(f"{name}Page", f"A page of {name}s, newest first.", view, view=(Literal["full"], ...)),
        summary=summary,
        summary_page=_page(
            f"{name}SummaryPage",
            f"A page of the summaries of {name}s, newest first.",
            summary,
            view=(Literal["summary"], ...),
        ),
        counts=_counts(name, phase, own_kind),
        history=_page(f"{name}HistoryPage", f"A page of the history of a {name}, oldest first.", entry),
        dry_run_list=ResourceDryRunList,
        batch=_derive(
            f"{name}BatchView", View, "The results of a batch, in the order of the request.", items=_list_of(item)
        ),
        watch=event,
    )


def _typed_fields(figures: type[Figures]) -> dict[str, Any]:
    """Return the fields of figures, as `_derive` takes them."""
    return {key: (field.annotation, field) for key, field in figures.model_fields.items()}


def _counts(name: str, phase: tuple[Any, Any], own_kind: tuple[Any, Any]) -> Any:
    of_phase = _derive(f"{name}PhaseCountView", PhaseCountView, f"The number of {name}s in a phase.", phase=phase)
    of_kind = _derive(f"{name}KindCountView", KindCountView, f"The number of {name}s.", kind=own_kind)
    about = f"The numbers of {name}s by phase and by kind."
    return _derive(f"{name}CountsView", CountsView, about, phases=_list_of(of_phase), kinds=_list_of(of_kind))


def _derive(name: str, base: Model, description: str, /, **fields: Any) -> Any:
    """Return a view with more fields. The description is that of its schema in the OpenAPI document."""
    return create_model(name, __base__=base, __doc__=description, **fields)


def _page(name: str, description: str, item: Model, **fields: Any) -> Any:
    return _derive(name, View, description, items=_list_of(item), next_page_token=(NextPageToken, ...), **fields)


def _list_of(item: Model) -> tuple[Any, Any]:
    return GenericAlias(list, (item,)), ...
