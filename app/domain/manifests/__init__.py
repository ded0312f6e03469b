"""A plan as plain Kubernetes objects, as the API server takes them.

Pure functions from plan to dict; nothing here knows a kind. Every object but the anchor is owned by the anchor, so
deleting that one deletes all.
"""
