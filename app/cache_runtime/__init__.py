"""The server inside a SampleSet's pods: it syncs, warms up, removes and clears what a controller posts, one at a time.

It shares nothing with the gateway but values of `app.domain`; the two meet over HTTP. What a job is told to do comes
from outside: paths are held to the data and cache directories, commands are argument lists, and what carries
credentials is kept from logs, results and other people's eyes. All of it may be killed at any line and started again.
"""
