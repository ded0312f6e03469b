"""The HTTP server: it accepts connections, bounds what a client may take of them, and runs an ASGI application.

    listener ─▶ connection (uvicorn's protocol, guarded) ─▶ application
       └─ admission: how many connections, and whose            └─ limits: bytes of headers, time for each stage

A client that is slow or hostile costs a bounded share of memory, descriptors and CPU time, and nobody else's requests.
This package knows nothing of jobs and imports nothing else of the gateway. Decision 0018 says why it extends uvicorn.
"""
