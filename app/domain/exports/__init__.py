"""The format of exports of ended jobs: the lines of a segment, and the rules that they follow. docs/exports.md has it.

What the rows of a job contain is that of its tables: `app/db/exports`.
"""
