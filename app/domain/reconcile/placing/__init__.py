"""Whether the pods of a job find nodes together, beside what its queue decides.

`gangs` lets a scheduler place new pods together, `misplaced` replaces pods that wait for nodes which they cannot get,
and `starting` withdraws a job of which only a part found nodes.
"""
