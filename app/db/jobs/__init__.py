"""Jobs in PostgreSQL: submission, edits by clients, decisions of the controller, and reads of both."""
