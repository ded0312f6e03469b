"""The processes of `jobgate serve --workers N`: a supervisor, N API workers, and a process for the controller.

    supervisor ─ binds the socket, forks ─▶ worker-0 … worker-N-1   accept on the shared socket
       ▲   └─ orders: drain, stop ────────▶ controller              accepts nothing
       └─ "ready", and the end of a process

Rule: `fleet.py` decides without I/O what starts, drains and ends, and when. The supervisor stays free of threads and
event loops, because a fork copies them in an undefined state. Decision 0030 gives the reasons.
"""
