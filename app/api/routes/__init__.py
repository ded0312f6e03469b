"""One module a resource. A handler checks the caller, calls a service and renders; paths are written out in full."""
