"""The pure core of jobgate: functions of values, without I/O, clock or randomness.

From a manifest to a plan:

    decoding         strict JSON and YAML
    kinds            what each kind accepts, and its plan and native status
    pod_template     whether a pod template is valid
    policy           whether the pod policy allows it
    planning         the calls of `kinds` by the API and the controller
    sample_drafts    the same for new SampleSets and SampleJobs
    plan             what a job means, whatever its kind
    resize           what an edit of the size stores beside the manifest
    reservations     the names and the room that a live job takes from others

From a plan to the cluster, and back:

    manifests        the Kubernetes objects of a plan
    cluster_check    what the answers of the cluster to a dry run mean
    kubernetes       formats of Kubernetes
    status           what observed pods and refusals mean
    queueing         what Kueue admits
    reconcile        the new status of a job, and the next actions
    cache            SampleSets and SampleJobs: their objects and their reconcile
    scaling          the decisions of the autoscaler
    recovery         what differs after an older database was restored

About objects:

    access           what a caller may reach
    listing          which changes can change a page of a list
    redaction        the removal of secrets from what is stored
    retention        how long records are kept
    usage            what jobs hold, for what, and what it costs
    kept_logs        the chunks of whole logs, and their keys
    exports          the format of exported jobs
    timekeeping      the time of the installation

Shared words: `vocabulary`, `errors`, `suggestions` (for misspelt names) and `value_types` (for messages). `data` holds
the generated schema of pod templates.
"""
