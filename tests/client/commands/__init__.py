"""The commands of the client, and what users type."""
