"""SampleSets and SampleJobs in PostgreSQL: edits by clients, decisions of the controller, and reads of both."""
