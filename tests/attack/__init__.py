"""Attacks on the HTTP server of a real gateway process, while a well-behaved client polls it."""
