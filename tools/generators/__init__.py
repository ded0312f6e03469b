"""Generators of files that are part of the repository, and the check that they are current."""
