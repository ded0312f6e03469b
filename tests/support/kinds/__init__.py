"""Manifests of the registered kinds, and kinds that exist in tests alone."""
