"""The route handlers: each one checks the access of the caller, calls a service and renders the answer."""
