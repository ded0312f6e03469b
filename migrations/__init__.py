"""The schema's history, run by `jobgate migrate`. Installed with the wheel."""
