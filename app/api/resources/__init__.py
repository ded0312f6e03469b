"""The resources of the API, from whose description the routes are built: jobs, and one for each sample kind."""
