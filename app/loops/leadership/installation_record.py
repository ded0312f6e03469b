"""The ConfigMap that records on the cluster what an installation has reached, so that an older database is noticed."""

from contextlib import suppress
from dataclasses import dataclass, replace

from typing_extensions import override

from app.domain.kubernetes import labels
from app.domain.plan import Manifest
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.errors import KubeAlreadyExists, KubeNotFound
from app.k8s.resources import CONFIG_MAP
from app.loops.leadership.lease import Leadership

_RECOVERY = "recovery"  # a key of the ConfigMap
_BEGUN = "begun"
_MARK = "mark"


def record_name(installation: str) -> str:
    return f"jobgate-installation-{installation}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What an installation has reached. `recovering` says that `jobgate recover` has begun and not completed.

    `mark` is that of the term or the recovery which has written this, or empty if it is of a version without marks.
    `version` is the resourceVersion of the ConfigMap from which this was read.
    """

    epoch: int
    position: int
    recovering: bool = False
    mark: str = ""
    version: str = ""


class InstallationRecord:
    """Reads and writes the ConfigMap. Each write needs the lease; `timeout` is seconds for each request."""

    def __init__(
        self, api: KubeApi, leadership: Leadership, installation: str, system_namespace: str, *, timeout: float
    ) -> None:
        self._api = api
        self._leadership = leadership
        self._installation = installation
        self._namespace = system_namespace
        self._timeout = timeout

    @override
    def __str__(self) -> str:
        return f"{self._namespace}/{record_name(self._installation)}"

    async def read(self) -> Reached | None:
        """Return what is recorded; None if nothing is."""
        name = record_name(self._installation)
        try:
            found = await self._api.get(CONFIG_MAP, name, self._namespace, codec=OBJECT, timeout=self._timeout)
        except KubeNotFound:
            return None
        data = found.raw.get("data") or {}
        return Reached(
            epoch=int(data.get("epoch", "0")),
            position=int(data.get("position", "0")),
            recovering=_RECOVERY in data,
            mark=data.get(_MARK, ""),
            version=found.metadata.resource_version,
        )

    async def write(self, reached: Reached, *, over: Reached) -> Reached:
        """Replace what was read before, and return what is recorded then.

        Raises:
            KubeConflict: another process has written since.
        """
        patch = {"metadata": {"resourceVersion": over.version}, "data": {_RECOVERY: None, **_data(reached)}}
        self._leadership.guard(self._timeout)
        name = record_name(self._installation)
        written = await self._api.merge_patch(CONFIG_MAP, name, self._namespace, patch=patch, timeout=self._timeout)
        return replace(reached, version=written.metadata.resource_version)

    async def create(self, reached: Reached) -> None:
        """Create the ConfigMap unless another process of this installation was faster."""
        self._leadership.guard(self._timeout)
        manifest: Manifest = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": record_name(self._installation),
                "namespace": self._namespace,
                "labels": {labels.INSTALLATION: self._installation, labels.MANAGED_BY: labels.MANAGER},
            },
            "data": _data(reached),
        }
        with suppress(KubeAlreadyExists):
            try:
                await self._api.create(manifest, timeout=self._timeout)
            except KubeNotFound:
                await self._create_namespace()
                await self._api.create(manifest, timeout=self._timeout)

    async def _create_namespace(self) -> None:
        """Create the system namespace. In production deploy/ creates it; the embedded cluster has none."""
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
        with suppress(KubeAlreadyExists):
            await self._api.create(manifest, timeout=self._timeout)


def _data(reached: Reached) -> dict[str, str]:
    begun = {_RECOVERY: _BEGUN} if reached.recovering else {}
    mark = {_MARK: reached.mark} if reached.mark else {}
    return {"epoch": str(reached.epoch), "position": str(reached.position), **mark, **begun}
