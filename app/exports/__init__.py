"""Exports ended jobs to segments in a folder or an object store, and imports them for reading."""
