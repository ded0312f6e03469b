"""Removes what is no longer needed: orphans, expired rows, and all objects of an installation that is uninstalled.

For metrics, it also counts the jobs, the feed entries and the size of the database.
"""
