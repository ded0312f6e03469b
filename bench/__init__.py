"""`make bench`: compares jobgate with a real kube-apiserver in one run, with one compiled load client.

Rule: the measured programs run as in production: as separate processes, over HTTP, with a durable PostgreSQL on the
same disk. Only the breakdown and the stages call functions of the program. Traffic stays on loopback, every step has a
time limit, and processes are ended by pid.
"""
