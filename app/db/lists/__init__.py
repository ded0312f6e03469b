"""Pages and counts of the objects of any resource: the SQL of each filter, and the index along which a list is read."""
