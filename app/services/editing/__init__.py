"""Edits, deletion and redaction of stored objects.

`objects` has the steps of every edit, and decides which edits change the posted manifest. `jobs` and `samples`
add what only they can do.
"""
