"""The client of jobgate: the library `jobgate.client` and the commands `jobgate submit`, `list`, `logs` and so on.

Uses the public API only. Imports nothing of the packages of the server, which are a distribution of their own.
"""
