"""The command `jobgate demo`: runs every example on a development server, through the public API only."""
