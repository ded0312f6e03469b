"""A PostgreSQL of our own, for `jobgate dev`, the demo and the tests.

Law: only the binaries of the wheel are used, never its Python code; nothing outside the given directory is
changed (one short socket directory excepted, when the path is too long for a socket); no user is added; the
server never outlives its supervisor for longer than a fast shutdown takes.
"""
