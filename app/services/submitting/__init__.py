"""Submission of new objects: `objects` has the steps for all resources, `jobs` what jobs add.

The other modules check what only new objects must pass, such as the dry run of the cluster.
"""
