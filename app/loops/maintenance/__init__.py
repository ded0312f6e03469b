"""Removes what is no longer needed: orphans, expired rows, and all objects of an installation that is uninstalled.

It also counts what the installation has, for metrics.
"""
