"""jobgate beside a real kube-apiserver: what `python -m bench` measures without a command.

run           the parts of a run, and their order
throughput    submissions and polls per second on both sides
lag           the time from the status of a pod until a client of jobgate receives it
breakdown     the CPU time of a request by stage
"""
