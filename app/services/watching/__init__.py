"""Distributes the feed of changes to the streams and long polls of a process."""
