"""The life of SampleSets and SampleJobs as pure passes: record and observation in; record, actions and events out.

Level-triggered, as `app.domain.reconcile`: a pass may be lost or repeated at any line. What it concludes is written
first and done afterwards, and whatever it asks for is asked again while the cluster does not show it.
"""
