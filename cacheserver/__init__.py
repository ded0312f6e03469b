"""The runtime server in the pods of a SampleSet. It runs the jobs that the controller posts, one at a time.

It is a program of its own: it imports nothing of the gateway except values of `app.domain` and `app.base`, and the two
communicate over HTTP. The options of a job are untrusted: paths are confined to the data and cache directories,
commands are argument lists without a shell, and credentials never reach logs or results. The process may be killed at
any line and started again.
"""
