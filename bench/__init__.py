"""`make bench`: jobgate beside a real kube-apiserver, in one run, with one compiled load client.

Law: what is measured runs as its users run it (processes of its own, HTTP, a durable PostgreSQL on the same disk); the
breakdown alone calls the program's functions. Traffic stays on loopback, every step is bounded in time, processes are
ended by pid.
"""
