"""One module a kind: the spec users write, its defaults and validation, its plan, and its native status.

Dialects know nothing of one another, and nothing downstream knows them. A new kind is one module here and one
line in `registry`.
"""
