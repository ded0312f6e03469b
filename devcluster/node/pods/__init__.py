"""The pods of the node: one worker each, and the status that the node reports."""
