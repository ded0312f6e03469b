"""What jobs use: the requests of pods times the time that the pods hold them, by what that time was good for.

Pure. Amounts and times are integers, so that sums are exact and equal in any order. What is shown is rounded nowhere
else than in `report`.
"""
