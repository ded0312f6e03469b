"""The edits of a SampleSet that its state forbids."""

from app.domain.cache.reconcile.values import SetRecord
from app.domain.cache.vocabulary import SetPhase
from app.domain.kinds.samples.edits import frozen_changes
from tests.domain.cache.made import set_spec


def test_the_source_is_frozen_after_the_first_sync() -> None:
    stored, new = set_spec(), set_spec(noSync=True, source={"uri": "s3://other.example.com"}, partitions=9)
    assert frozen_changes(SetRecord(phase=SetPhase.SYNC_FAILED), stored, new) == []
    for record in (SetRecord(phase=SetPhase.MOUNT, synced=True), SetRecord(phase=SetPhase.READY)):
        assert [error.pointer for error in frozen_changes(record, stored, new)] == ["/spec/source", "/spec/noSync"]
        assert frozen_changes(record, stored, set_spec(partitions=9)) == []
