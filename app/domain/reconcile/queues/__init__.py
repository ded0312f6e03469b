"""What the queue of a job permits in a reconcile, what is recorded of its Workloads, and what is written to them."""
