"""The queue of the examples: objects of Kueue, which the demo creates in the cluster and leaves there."""

from contextlib import suppress
from typing import Any, Final

import yaml

from app.base.clock import SystemClock
from app.bundled import bundled_directory
from app.k8s.api import KubeApi
from app.k8s.errors import KubeAlreadyExists, KubeForbidden
from app.k8s.resources import CLUSTER_QUEUE, Discovery, resource_for

FILE: Final = "queues/queue.yaml"


async def make_queue(api: KubeApi, namespace: str) -> str:
    """Create those of the objects that are missing. Return what prevents it, or an empty string.

    Raises:
        KubeError: the cluster does not answer, or refuses an object.
    """
    if not await Discovery(api.get_raw, SystemClock()).has(CLUSTER_QUEUE):
        return "the cluster does not have Kueue"
    documents: list[dict[str, Any]] = list(yaml.safe_load_all(bundled_directory("examples").joinpath(FILE).read_text()))
    try:
        for document in documents:
            if resource_for(document["apiVersion"], document["kind"]).namespaced:
                document["metadata"]["namespace"] = namespace
            with suppress(KubeAlreadyExists):
                await api.create(document)
    except KubeForbidden as error:
        return str(error)
    return ""
