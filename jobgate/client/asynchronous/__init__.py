"""The asynchronous client. `make openapi` generates the synchronous one from it, so that both behave alike."""
