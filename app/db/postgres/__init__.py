"""The connections to PostgreSQL, their errors and sessions, the schema, and the parts that statements are built of.

It knows the tables of `app.models`, and no rule about a job.
"""
