"""Warms the server process from which gateways are forked: each gateway builds its application at its start."""

import gc

from app.k8s.connection import kubernetes_library
from app.running.application import create_app

create_app()  # fills the caches of models and types
kubernetes_library()
gc.collect()
gc.freeze()  # garbage collections of a gateway need not visit what it inherits
