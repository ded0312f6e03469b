"""Attacks on the HTTP server of a real gateway process, while a client that behaves keeps asking."""
