"""The invariants of ARCHITECTURE.md as checks of a database in use, which read only.

`check` says what a check is, `runner` runs them in batches, and the other modules are the table of all checks.
What a check of the cluster needs is in `app/loops/maintenance/verification.py`.
"""
