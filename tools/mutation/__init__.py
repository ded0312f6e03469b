"""`make mutate`: changes app/domain in one place at a time, and counts the changes that the tests of the domain notice.

Cosmic Ray makes the mutants. This package draws the sample, chooses the tests of each mutant, and judges.
"""
