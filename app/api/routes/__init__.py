"""The route handlers: each one checks the access of the caller, calls a service and renders the answer.

`objects` has the routes of every resource, `jobs` those of jobs alone, and each other module has its own subject.
"""
