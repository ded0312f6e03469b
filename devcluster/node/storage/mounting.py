"""Prepares the volumes of a pod, with retries, and refreshes those that contain API objects."""

import asyncio
import contextlib
import random
from pathlib import Path

from devcluster.errors import StatusError
from devcluster.node.context import PodContext
from devcluster.node.kube.configuration import volume_references
from devcluster.node.storage.volumes import (
    MountError,
    backing_directory,
    has_payload,
    payload_of,
    service_account_tokens,
    write_payload,
)
from devcluster.node.waiting import wait_at_most


async def mount_volumes(context: PodContext, stopping: asyncio.Event) -> bool:
    """Prepare all volumes, with retries; return False if the pod was stopped before they were ready."""
    while not stopping.is_set():
        try:
            await _mount_all(context)
        except (MountError, StatusError, OSError) as error:
            context.event("FailedMount", str(error), warning=True)
            await wait_at_most(stopping, context.node.settings.mount_retry)
        else:
            return True
    return False


async def _mount_all(context: PodContext) -> None:
    tokens = await service_account_tokens(context.node.client, context.pod)
    await _write_payloads(context, tokens, max_age=context.freshness())
    for volume in context.pod["spec"].get("volumes") or []:
        if not has_payload(volume):
            context.volumes[volume["name"]] = await backing_directory(context, volume)


async def _write_payloads(context: PodContext, tokens: dict[str, str], *, max_age: float) -> None:
    volumes = [v for v in context.pod["spec"].get("volumes") or [] if has_payload(v)]
    objects = await context.node.objects.fetch(context.namespace, volume_references(volumes), max_age=max_age)
    for volume in volumes:
        payload = payload_of(volume, objects, context.sources(objects), tokens)
        folder: Path = context.folder / "volumes" / volume["name"]
        write_payload(folder, payload)
        context.volumes[volume["name"]] = folder


async def refresh_volumes(context: PodContext) -> None:
    """Refresh volumes every `configmap_refresh` seconds. A volume that cannot be read keeps its content."""
    volumes = [v for v in context.pod["spec"].get("volumes") or [] if has_payload(v)]
    if not volumes:
        return
    every = context.node.settings.configmap_refresh
    while True:
        # Jitter, so that the pods of a node do not refresh at the same time.
        await asyncio.sleep(every * random.uniform(0.9, 1.0))  # noqa: S311
        with contextlib.suppress(MountError, StatusError, OSError):
            tokens = await service_account_tokens(context.node.client, context.pod)
            # The pods of a node share answers, but no refresh gets an answer of the one before it.
            await _write_payloads(context, tokens, max_age=every / 2)
