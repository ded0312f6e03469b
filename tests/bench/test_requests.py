"""`bench large` counts requests from the metrics of kube-apiserver."""

from bench.measuring.kubernetes import count_requests

METRICS = """\
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",\
subresource="",verb="POST",version="v1"} 1000
apiserver_request_total{code="409",component="apiserver",dry_run="",group="",resource="pods",scope="resource",\
subresource="",verb="POST",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="resource",\
subresource="status",verb="PATCH",version="v1"} 1.25e+03
apiserver_request_duration_seconds_count{resource="pods",subresource="",verb="POST"} 7
"""


def test_requests_are_summed_by_verb_and_resource() -> None:
    assert count_requests(METRICS) == {"POST pods": 1002, "PATCH pods/status": 1250}
