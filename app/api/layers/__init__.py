"""The ASGI layers that every request passes, from the outside in.

    request ─▶ RequestLayer ─▶ RepresentationLayer ─▶ ProtectionLayer ─▶ routes
                 │               │                      └ hosts and origins of browsers, size of bodies
                 │               └ HEAD, compression
                 └ share, id, client, metrics, access log, span, answer to a failure, pieces of long bodies

With `JOBGATE_CORS_ORIGINS`, Starlette's layer for CORS is between the second and the third one.
"""
