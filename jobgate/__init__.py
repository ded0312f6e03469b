"""The client of jobgate: the library `jobgate.client` and the commands `jobgate submit`, `list`, `logs` and so on.

Uses the public API only. Imports nothing of the packages `app` and `devcluster`, so that it installs without the
dependencies of the server.
"""
