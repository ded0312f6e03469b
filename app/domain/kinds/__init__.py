"""Kinds of manifests: what every kind provides, the registry of all kinds, and one package for each kind.

The package of a kind has its spec, defaults, validation, plan and native status. Kinds do not import one another.
`manifests`, `reconcile` and `status` do not know them.
"""
