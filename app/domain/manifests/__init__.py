"""Renders plans as Kubernetes objects in plain dicts.

The modules do not depend on kinds. The anchor owns every other object of a job, so its deletion deletes all.
"""
