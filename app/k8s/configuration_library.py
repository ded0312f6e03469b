"""Loads the part of kubernetes_asyncio that reads kubeconfigs, without the 800 modules of its API models.

Its packages `kubernetes_asyncio` and `kubernetes_asyncio.client` import all models, which takes a second of CPU time
and tens of megabytes. So both packages are created but not executed, and contain only the two names that the readers
import from them.
"""

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

_LIBRARY: Final = "kubernetes_asyncio"
_CLIENT: Final = "kubernetes_asyncio.client"


def configuration_library() -> Any:
    """Return the module `kubernetes_asyncio.config`. It takes a while at first: call it off the event loop."""
    if _LIBRARY not in sys.modules:
        _unexecuted(_LIBRARY)
        client = _unexecuted(_CLIENT)
        vars(client)["Configuration"] = _configuration_class()
        # Only functions that make a client of the library use it.
        vars(client)["ApiClient"] = object
    return import_module("kubernetes_asyncio.config")


def new_configuration() -> Any:
    """Return an empty configuration, which the functions of `configuration_library` fill."""
    return _configuration_class()()


def _configuration_class() -> Any:
    return import_module("kubernetes_asyncio.client.configuration").Configuration


def _unexecuted(name: str) -> ModuleType:
    """Register a package whose modules can be imported, without running its `__init__`."""
    spec = find_spec(name)
    assert spec is not None, f"{name} is a dependency"
    module = module_from_spec(spec)
    sys.modules[name] = module
    return module
