"""What the callers of one process share: time of the event loop, and memory for bodies.

It knows no request and does no I/O. `app/http_server` gives each request its share, and code that works for a request
uses it by `share.py`. Every caller is a key: its token or user, or its address until it has proved who it is.
"""
