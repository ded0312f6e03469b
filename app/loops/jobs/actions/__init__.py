"""What a decision does in the cluster: it creates, releases and deletes the objects of jobs."""
