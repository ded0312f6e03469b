"""Reads ended jobs with everything that is recorded about them as JSON, and stores them again.

Which tables these are follows from `app/db/redaction.py`, so that no table is forgotten.
"""
