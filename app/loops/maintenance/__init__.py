"""Removes what is no longer needed: orphans, expired rows, and all objects of an installation that is uninstalled."""
