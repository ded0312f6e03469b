"""One reconcile of a job, pure: plan, intent, record and observed pods in; status and actions out.

`reconcile` calls the others: `stepping` takes the next step of each replica, after `lifecycle` has evaluated the end of
its attempt; `rules` and `endings` end the job, `resizing` changes its size, `queues` decides what its queue permits,
`placing` which of its pods get nodes together, and `progress` computes its status.
"""
