"""One file a step, named by date and time. Expand, migrate, contract: the running version must survive each."""
