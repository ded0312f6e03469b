"""Edits, deletion and redaction of stored objects."""
