"""The dialects: for each kind its spec, defaults, validation, plan and native status.

Dialects do not import one another, and nothing after the plan knows them. A new kind is one module or package here and
one line in `registry`.
"""
