"""The operations on objects, which check, store and delete them as an API server does."""
