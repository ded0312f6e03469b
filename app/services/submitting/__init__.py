"""Submission of new objects, and the checks of the cluster that only new objects must pass."""
