"""How a job waits, pauses and ends."""
