"""Kinds of manifests: what every kind provides, the registry of all kinds, and the status of kinds without pods."""
