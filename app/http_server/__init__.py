"""The HTTP server: accepts connections, enforces limits on them, and runs an ASGI application.

    acceptor ─▶ connection (a subclass of uvicorn's protocol) ─▶ share of the process ─▶ application
       └─ number of connections, in total and per address   └─ bytes of headers, time for each stage

A slow or hostile client costs a bounded amount of memory, file descriptors and CPU time. It never delays the requests
of other clients. This package knows nothing of jobs and imports no other package of the gateway. Decision 0018 explains
why it extends uvicorn.
"""
