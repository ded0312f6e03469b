"""The real control plane, when there is one."""

import os
import uuid
from collections.abc import AsyncIterator

import pytest

from app.k8s import resources
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.connection import connect
from app.k8s.errors import KubeStatusError
from tests.support.waiting import until

KUBECONFIG = "JOBGATE_TEST_KUBECONFIG"


@pytest.fixture
async def live() -> AsyncIterator[KubeApi]:
    path = os.environ.get(KUBECONFIG)
    if not path:
        pytest.skip(f"needs a real control plane: set {KUBECONFIG} to its kubeconfig")
    async with await connect(kubeconfig=path, context=None) as api:
        yield api


@pytest.fixture
async def namespace(live: KubeApi) -> AsyncIterator[str]:
    name = f"k8s-{uuid.uuid4().hex[:8]}"
    created = await live.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def has_service_account() -> bool:
        try:
            await live.get(resources.SERVICE_ACCOUNT, "default", name, codec=OBJECT)
        except KubeStatusError:
            return False
        return True

    await until(has_service_account)
    yield name
    await live.delete(resources.NAMESPACE, name, uid=created.metadata.uid)
