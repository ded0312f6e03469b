"""The edits of a SampleSet that its state forbids, and manifests of earlier versions that can still be edited."""

from typing import Any

import pytest

from app.domain.cache.reconcile.values import SetRecord
from app.domain.cache.vocabulary import SetPhase
from app.domain.kinds.samples.edits import frozen_changes
from app.domain.kinds.samples.kinds import SAMPLE_SET
from tests.domain.cache.made import set_spec


def test_the_source_is_frozen_after_the_first_sync() -> None:
    stored, new = set_spec(), set_spec(noSync=True, source={"uri": "s3://other.example.com"}, partitions=9)
    assert frozen_changes(SetRecord(phase=SetPhase.SYNC_FAILED), stored, new) == []
    for record in (SetRecord(phase=SetPhase.MOUNT, synced=True), SetRecord(phase=SetPhase.READY)):
        assert [error.pointer for error in frozen_changes(record, stored, new)] == ["/spec/source", "/spec/noSync"]
        assert frozen_changes(record, stored, set_spec(partitions=9)) == []


@pytest.mark.parametrize(
    ("stored", "current"),
    [
        ({"csi": {"driver": ""}}, {"csi": {"driver": "juicefs"}}),
        ({"cache": {"levels": []}}, {"cache": {}}),
        (
            {"cache": {"levels": [{"mediumType": "", "path": ""}, {"mediumType": "SSD", "cacheSize": 0}]}},
            {"cache": {"levels": [{}, {"mediumType": "SSD", "cacheSize": 0}]}},
        ),
        (
            {"warmupOptions": {"strategyName": "", "file": ""}},
            {"warmupOptions": {"strategyName": "sequence", "file": ""}},
        ),
        ({"csi": {"driver": "alluxio"}, "secretRef": {"namespace": ""}}, None),
        ("none", None),
        ([{"csi": {"driver": ""}}], None),
    ],
)
def test_empty_values_of_an_earlier_version_are_read_as_what_they_stood_for(stored: Any, current: Any) -> None:
    assert SAMPLE_SET.current({"kind": "K", "spec": stored}) == {"kind": "K", "spec": current or stored}
    assert SAMPLE_SET.current({"kind": "K"}) == {"kind": "K"}
