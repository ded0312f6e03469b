"""Lists objects by the labels of an installation, page by page."""

from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

from app.base.cancellation import rounds
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT, Codec, HasMetadata
from app.k8s.errors import KubeForbidden, KubeNotFound
from app.k8s.resources import NAMESPACE, STATEFUL_SET, WORKLOAD, KubeResource

T = TypeVar("T", bound=HasMetadata)
_OPTIONAL: Final = (WORKLOAD, STATEFUL_SET)


async def list_scopes(api: KubeApi, namespaces: Sequence[str]) -> Sequence[str | None]:
    """Return the namespaces in which objects can be, or None for all of the cluster.

    With a namespace that was deleted, its objects are gone, and also the role that permits to list them.
    """
    if not namespaces:
        return [None]
    try:
        present = {item.metadata.name for item in await api.list_all(NAMESPACE, codec=OBJECT)}
    except KubeForbidden:
        return namespaces
    return [name for name in namespaces if name in present]


async def list_labelled(
    api: KubeApi, resource: KubeResource, namespace: str | None, selector: str, codec: Codec[T]
) -> AsyncIterator[T]:
    """Yield all objects with the labels. An API that the cluster does not serve has none."""
    token = ""
    for _ in rounds():
        try:
            page = await api.list_page(resource, namespace, codec=codec, label_selector=selector, continue_token=token)
        except KubeNotFound:
            return
        except KubeForbidden:
            # Without the rights to these, which are optional, none was made.
            if resource in _OPTIONAL:
                return
            raise
        for item in page.items:
            yield item
        token = page.continue_token
        if not token:
            return
