"""An embedded PostgreSQL server for `jobgate dev`, the demo and the tests.

It uses the binaries of the wheel, never its Python code. It changes nothing outside the given directory, except for a
socket directory if the path is too long for a socket, and it adds no user. The server outlives its supervisor for no
longer than a fast shutdown takes.
"""
