"""Keeps whole logs: follows the containers of pods, and writes what they print to the log store.

Each process of the role takes a share of the pods. Nothing here decides anything about a job.
"""
