"""Manifests to learn from; README.md says what each shows.

A package, so that an installed `jobgate demo` finds them.
"""
