"""The kinds SampleSet and SampleJob: specs, edits that their states forbid, warnings and status."""
