"""Describes a resource of the API. The routes that all resources share are built from this description.

Resource ─▶ routes: submit, batch, replace, patch, delete, list, count, get, status, history, events, watch
    ├ jobs: all kinds whose manifests become pods (`app.api.resources.jobs`)
    └ one resource for each sample kind (`app.api.resources.samples`)
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from pydantic import BaseModel

from app.api.answers.conditional import check_if_match, whole_tag
from app.api.requests.dependencies import Api
from app.api.shared.job_views import Rendered, Representation
from app.db.objects.resources import StoredRow
from app.domain.cluster_check import ClusterCheck
from app.domain.kinds.registry import all_kinds
from app.domain.plan import Manifest
from app.services.editing.objects import Editor
from app.services.editing.redaction import Redactor
from app.services.gateway import Services
from app.services.reading.manifests import Sampler
from app.services.reading.objects import Address, Reader
from app.services.reading.queues import QueueCheck
from app.services.submitting.objects import Submitter

Model: TypeAlias = type[BaseModel]


class DryRunChecks(NamedTuple):
    """What a dry run has found out about a job.

    `cluster` is None if the cluster was not involved, and `queue` if the job has none.
    """

    cluster: ClusterCheck | None
    queue: QueueCheck | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models of a resource's answers in the OpenAPI document."""

    view: Model
    status: Model
    page: Model
    summary: Model
    summary_page: Model
    counts: Model
    history: Model
    dry_run_list: Model
    batch: Model
    watch: Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """The examples of request bodies in the OpenAPI document."""

    manifest: Manifest
    patch: Manifest


@dataclass(frozen=True, slots=True)
class CurrentStatus:
    """The status view of an object at a version. `is_settled` says that it has ended and its objects change no more."""

    view: BaseModel
    namespace: str
    version: int
    is_settled: bool


class Resource(ABC):
    """A resource of the API, with the services behind it and the rendering of its views.

    Attributes:
        name: the segment in paths, and the name in the feed.
        operation_noun: the name of one object in operation ids.
        noun: the name of one object in descriptions and messages.
        event: the name of its server-sent events.
        description: the description of its operations as a group.
        is_about_set: whether lists can be filtered by the SampleSet that the objects concern.
        has_replicas: whether lists can be filtered by the queue of an object, and by the replicas that run after its
            end.
        batch_operation: the operation id of the batch submission.
    """

    name: str
    operation_noun: str
    noun: str
    event: str
    description: str
    models: Models
    examples: Examples
    phases: type[StrEnum]
    is_about_set: bool = False
    has_replicas: bool = False
    batch_operation: str

    @property
    def all_path(self) -> str:
        """Path of the list over all namespaces."""
        return f"/api/v1/{self.name}"

    @property
    def kinds(self) -> list[str]:
        """The kinds of its objects."""
        return sorted(kind.name for kind in all_kinds().values() if kind.resource == self.name)

    @property
    def uid_path(self) -> str:
        return f"{self.all_path}/{{uid}}"

    @property
    def collection_path(self) -> str:
        """Path of the list in one namespace, to which manifests are posted."""
        return f"/api/v1/namespaces/{{namespace}}/{self.name}"

    @property
    def object_path(self) -> str:
        return f"{self.collection_path}/{{name}}"

    @abstractmethod
    def reading(self, services: Services) -> Reader[Any]: ...

    @abstractmethod
    def submitter(self, services: Services) -> Submitter[Any, Any]: ...

    @abstractmethod
    def editor(self, services: Services) -> Editor[Any, Any]: ...

    @abstractmethod
    def redactor(self, services: Services) -> Redactor[Any]: ...

    @abstractmethod
    def created_bytes(self, prepared: Any) -> bytes:
        """Return the whole view of a new object, for the answer to its submission."""

    @abstractmethod
    def read(self, api: Api, address: Address, representation: Representation) -> Awaitable[Rendered]:
        """Return the current representation of the object at the address. Raises NotFound."""

    @abstractmethod
    async def render(self, api: Api, row: Any) -> Rendered:
        """Return the whole view of a row that was just read or written."""

    @abstractmethod
    def whole_views(self, api: Api, rows: Sequence[Any]) -> AsyncGenerator[bytes, None]:
        """Render the whole views of the rows, in their order and one at a time."""

    @abstractmethod
    def summary_bytes(self, row: Any) -> bytes:
        """Return the summary of an object, from a row of a page of summaries."""

    async def items(self, api: Api, rows: Sequence[Any], max_bytes: int) -> list[bytes]:
        """Return the whole views of the first rows that fit into `max_bytes` together, at least one if there is any."""
        items: list[bytes] = []
        size = 0
        async with aclosing(self.whole_views(api, rows)) as views:
            async for view in views:
                size += len(view)
                if items and size > max_bytes:
                    break
                items.append(view)
        return items

    @abstractmethod
    async def statuses(self, services: Services, uids: Collection[UUID]) -> Mapping[UUID, CurrentStatus]:
        """Return the current statuses of these objects. An object that no longer exists is left out."""

    @abstractmethod
    async def dry_run_bytes(self, prepared: Any, checks: DryRunChecks, sampler: Sampler) -> bytes:
        """Return the answer to the dry run of a prepared manifest."""

    @abstractmethod
    async def cluster_checks(
        self, services: Services, prepared: Sequence[Any], token_id: str
    ) -> Sequence[ClusterCheck | None]:
        """Have the cluster check the objects of prepared manifests. None if they do not follow from the manifest."""

    @abstractmethod
    async def queue_checks(
        self, services: Services, namespace: str, prepared: Sequence[Any], gang_apis: Collection[str] | None
    ) -> Sequence[QueueCheck | None]:
        """Check whether the queues of prepared manifests have room for them. None if one has no queue.

        `gang_apis` are the APIs of PodGroups that the cluster serves; None if they are not known.
        """

    def precondition(self, if_match: str | None) -> "Precondition":
        """Return the check that the object still has the version that the caller has read."""
        return Precondition(if_match, self.noun)


@dataclass(frozen=True, slots=True)
class Precondition:
    """If-Match of an edit. Calling it with the row raises PreconditionFailed if the row has another version."""

    if_match: str | None
    noun: str

    def __call__(self, row: StoredRow) -> None:
        check_if_match(self.if_match, whole_tag(row.uid, row.version), self.noun)
