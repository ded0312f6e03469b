"""The Service of a SampleSet's runtime servers, and the Secret with the token that the controller sends them."""

from typing import Final

from app.domain.cache.naming import object_metadata, pod_selector, service_name, token_secret_name
from app.domain.cache.values import SetIdentity
from app.domain.plan import Manifest

# Upstream's port, which is a constant there.
PORT: Final = 7716
PORT_NAME: Final = "service"
TOKEN_KEY: Final = "token"  # noqa: S105  a key's name


def runtime_service(identity: SetIdentity) -> Manifest:
    """Return the headless Service of the StatefulSet.

    It publishes addresses that are not ready, because the controller queries the servers before their pods are ready.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": object_metadata(identity, service_name(identity.name)),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": dict(pod_selector(identity)),
            "ports": [{"name": PORT_NAME, "port": PORT, "targetPort": PORT, "protocol": "TCP"}],
        },
    }


def token_secret(identity: SetIdentity, token: str) -> Manifest:
    """Return the Secret with which runtime servers authenticate the controller."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": object_metadata(identity, token_secret_name(identity.name)),
        "type": "Opaque",
        # The token is derived from the uid of the set, so it never changes.
        "immutable": True,
        "stringData": {TOKEN_KEY: token},
    }
