"""The logs of replicas: of one container, and of several replicas in one stream."""
