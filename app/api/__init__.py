"""HTTP and nothing else: bytes to calls of `app.services`, and their answers to bytes.

Nothing is decided here about jobs. Refusals rise as DomainErrors and meet their status in `errors` alone. What polls
read is rendered once a version (`rendering`) and sent as bytes.
"""
