"""Renders plans as Kubernetes objects in plain dicts.

Nothing here knows kinds. The anchor owns every other object of a job, so its deletion deletes all.
"""
