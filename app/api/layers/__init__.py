"""The ASGI layers that every request passes, from the outside in.

    request ─▶ RequestLayer ─▶ RepresentationLayer ─▶ ProtectionLayer ─▶ routes
                 │               │                      └ hosts and origins of browsers, size of bodies
                 │               └ HEAD, compression
                 └ share, id, client, metrics, access log, span, answer to a failure, pieces of long bodies

The routes that are requested most are tried first, without FastAPI's resolution of parameters: `app/api/routers.py`.

With `JOBGATE_CORS_ORIGINS`, Starlette's layer for CORS is between the second and the third one.
"""
