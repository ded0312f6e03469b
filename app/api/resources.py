"""The resources of the API behind one description, from which every route that they share is made.

Resource ─▶ routes: submit, batch, replace, patch, delete, list, get, status, history, events, watch
    ├ jobs: all kinds that become pods (`app.api.jobs`)
    └ one for each kind without pods (`app.api.podless`)
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias
from uuid import UUID

from pydantic import BaseModel

from app.api.conditional import check_if_match, whole_tag
from app.api.dependencies import Api
from app.api.polling import Rendered, Shown
from app.db.resources import StoredRow
from app.domain.plan import Manifest
from app.services.editing import Editor
from app.services.gateway import Services
from app.services.manifests import Sampler
from app.services.reading import Address, Reader
from app.services.submitting import Submitter

Model: TypeAlias = type[BaseModel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The shapes of a resource's answers, for the OpenAPI document."""

    view: Model
    status: Model
    page: Model
    dry_run: Model
    dry_run_list: Model
    batch: Model
    watch: Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """What the OpenAPI document shows of request bodies."""

    manifest: Manifest
    patch: Manifest


class Resource(ABC):
    """A collection of the API.

    `name` is its segment in paths and its name in the feed, `word` its name in operation ids, `what` its name in texts,
    `event` that of its server-sent events.
    """

    name: str
    word: str
    what: str
    event: str
    about: str
    models: Models
    examples: Examples
    phases: type[StrEnum]
    is_about_set: bool = False
    batch_operation: str

    @property
    def of_all(self) -> str:
        return f"/api/v1/{self.name}"

    @property
    def by_uid(self) -> str:
        return f"{self.of_all}/{{uid}}"

    @property
    def collection(self) -> str:
        return f"/api/v1/namespaces/{{namespace}}/{self.name}"

    @property
    def one(self) -> str:
        return f"{self.collection}/{{name}}"

    @abstractmethod
    def reading(self, services: Services) -> Reader[Any]: ...

    @abstractmethod
    def submitter(self, services: Services) -> Submitter[Any, Any, Any]: ...

    @abstractmethod
    def editor(self, services: Services) -> Editor[Any, Any]: ...

    @abstractmethod
    def new_bytes(self, services: Services, row: Any) -> bytes:
        """An object as the answer to its submission shows it."""

    @abstractmethod
    async def read(self, api: Api, address: Address, shown: Shown) -> Rendered:
        """A view of the object as it is now. Raises NotFound."""

    @abstractmethod
    async def render(self, api: Api, row: Any) -> Rendered:
        """The whole view of a row that was just read or written."""

    @abstractmethod
    async def items(self, api: Api, rows: Sequence[Any], max_bytes: int) -> list[bytes]:
        """As many rows of a page as fit an answer, at least one."""

    @abstractmethod
    async def statuses(self, services: Services, uids: Collection[UUID]) -> Mapping[UUID, BaseModel]:
        """The status views of those objects that exist."""

    @abstractmethod
    async def dry_run_bytes(self, prepared: Any, sampler: Sampler) -> bytes:
        """What the submission of a prepared manifest would store."""

    def precondition(self, if_match: str | None) -> "Precondition":
        """Holds an edit to the version that the caller has seen."""
        return Precondition(if_match, self.what)


@dataclass(frozen=True, slots=True)
class Precondition:
    """If-Match of an edit. A call raises PreconditionFailed if the row has another version."""

    if_match: str | None
    what: str

    def __call__(self, row: StoredRow) -> None:
        check_if_match(self.if_match, whole_tag(row.uid, row.version), self.what)
