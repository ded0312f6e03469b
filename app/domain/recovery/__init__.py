"""What differs between the record of a job and the cluster after an older database was restored, and the remedies."""
