"""`python -m bench soak`: a gateway under a steady load while its processes are killed, and what is left of it.

    soak.c ── submit, poll, delete ──▶ supervisor ─┬─ workers ─────────▶ PostgreSQL
    SoakGateway ── SIGKILL, start ───▶             └─ controller ──────▶ cluster with a node agent

Rule: functions without I/O in `judgement.py`, `tables.py` and `attempts.py` decide whether a job was lost or
duplicated, and what grew beyond its bound. No bound depends on the speed of the machine.
"""
