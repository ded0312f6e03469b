"""The Secret of a SampleSet in a cluster."""

import base64

from tests.support.clusters.kube import KubeClient

STORAGE = {"name": "vol", "storage": "s3", "metaurl": "redis://meta/1", "bucket": "https://b.example.com"}


async def create_storage_secret(kube: KubeClient, namespace: str, name: str = "storage") -> None:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in STORAGE.items()}
    (await kube.post(f"/api/v1/namespaces/{namespace}/secrets", {"metadata": {"name": name}, "data": data})).ok()
