"""The work of commands that an operator runs and that end: purge, export and import, recover, verify."""
