"""What observed objects mean: raw pods (`pods`), refused creates (`refusals`), and the replicas of a job (`rollup`).

`failures` says which failure began the end of a job, and `milestones` how long its stages took.
"""
