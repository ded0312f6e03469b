"""The part of Kueue's manager that the embedded cluster plays: quota, admission, preemption and the status of queues.

`controller` reads and writes. The other modules are pure. It has no fair sharing, admission checks, topologies or
partial admission.
"""
