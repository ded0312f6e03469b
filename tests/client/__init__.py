"""The client: its library and its commands."""
