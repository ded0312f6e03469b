"""Validates pod templates before a job is stored.

The checks are, in order: the closed schema of the definitions of Kubernetes (names and types), the validation code of
the API server, and the fields that jobgate sets itself. Error details never quote the value of an env variable.
"""

from typing import Final

from app.domain.decoding import JsonValue
from app.domain.errors import Problems, pointer_to
from app.domain.pod_template.checked_values import CheckedValues, digest_of
from app.domain.pod_template.metadata import check_main_container, check_metadata
from app.domain.pod_template.pod import check_pod_spec
from app.domain.pod_template.reading import mapping
from app.domain.pod_template.schema import check_schema

__all__ = ["validate_pod_template"]


# No setting changes whether a template is valid, so the templates of all requests share one cache.
_valid: Final = CheckedValues()


def validate_pod_template(template: JsonValue, pointer: str, problems: Problems) -> None:
    """Report every field of a PodTemplateSpec that Kubernetes or jobgate would refuse.

    Most clients submit the same template many times. It is checked once, which costs a tenth of a submission.
    """
    digest = digest_of(template)
    if digest in _valid:
        return
    before = len(problems)
    _check(template, pointer, problems)
    # The checks end early if the problems are full, and have then not seen the whole template.
    if len(problems) == before and not problems.full:
        _valid.add(digest)


def _check(template: JsonValue, pointer: str, problems: Problems) -> None:
    if not isinstance(template, dict):
        problems.add(pointer, "Invalid", "a pod template must be an object", "an object with metadata and spec")
        return
    check_schema(template, pointer, problems)
    check_metadata(template.get("metadata"), pointer_to(pointer, "metadata"), problems)
    if template.get("spec") is None:
        problems.add(pointer_to(pointer, "spec"), "Required", "a pod template must have a spec", "a PodSpec")
        return
    own_labels = mapping(mapping(template.get("metadata")).get("labels"))
    check_pod_spec(template["spec"], pointer_to(pointer, "spec"), problems, own_labels.keys())
    check_main_container(template, pointer, problems)
