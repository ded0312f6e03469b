"""The gateway as a process among others that die, freeze and lie: nothing accepted is lost, nothing is done twice."""
