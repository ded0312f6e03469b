"""One reconcile of a job, pure: plan, intent, record and observed pods in; status and actions out."""
