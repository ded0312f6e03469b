"""All SQL of jobgate. Callers pass and receive values. They never see a query or an error of the driver.

Objects and what belongs to them:

    objects                what all resources share: reads, history, stored answers
    jobs, samples          submission, edits, decisions of the controller, and reads
    reservations           the names and the room of live jobs
    lists                  pages and counts, and the index of each filter
    usage                  sums by day and group, and present rates
    kept_logs              which parts of logs are kept, and in which objects of the store
    feed                   changes in the order in which readers follow them

The installation and the cluster:

    installation           identity, time, leases, heartbeats and tokens
    log_keepers            the processes that keep logs
    queues                 LocalQueues, as the controller observes them
    cluster_namespaces     namespaces, as the controller observes them

What acts on stored objects of all resources:

    purge                  deletes expired objects
    redaction              stores what a redaction leaves of an object
    log_removal            removes kept logs
    former_namespaces      renames a namespace that was deleted and created again
    exports                reads ended jobs whole, and stores them again
    recovery               continues a database after one with a longer history
    verification           checks the invariants

`postgres` has connections, errors, the schema, and the parts of statements.
"""
