"""The views of the installation and of the caller. They name no namespace that the caller may not see."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from app.api.views.base import View
from app.api.views.closed_sets import ControllerStateName
from app.base.version import VERSION
from app.db.installation.heartbeats import NO_LOAD
from app.db.installation.system import StoredSystem
from app.domain.access.credentials import Role
from app.domain.access.namespaces import NamespaceSet
from app.domain.policy import Level
from app.services.access import Principal
from app.services.gateway import Services
from app.services.reading.system import SystemState
from app.services.watching.positions import Position

# Messages of the controller and of the database may name hosts and namespaces, so only admins get them.
_MESSAGES: Final[Mapping[str, str]] = {
    "Waiting": "no controller is active",
    "Syncing": "the controller compares the jobs with the cluster",
    "Unreachable": "the cluster does not answer the controller",
    "WrongCluster": "the cluster is not the one of this installation",
}
_NO_DATABASE: Final = "PostgreSQL does not accept writes"
_WRONG_CLOCK: Final = "a clock of the installation is wrong"


class DatabaseHealthView(View):
    """Whether PostgreSQL accepts writes."""

    ok: bool
    """Whether PostgreSQL accepts writes, as in `/readyz`."""
    detail: str
    """What is wrong; empty otherwise. Only admins of all namespaces get the whole message."""


class ControllerHealthView(View):
    """The active controller of the installation."""

    ok: bool
    """False if an operator must act. It is true while the cluster is unreachable, because that can end by itself."""
    state: ControllerStateName
    """What the controller reports."""
    message: str
    """Why it does not run; empty otherwise. Only admins of all namespaces get the whole message."""


class LeaseView(View):
    """The lease that makes one controller active."""

    held: bool
    """Whether a process holds it."""
    epoch: int
    """Increases with each takeover; 0 before the first controller."""
    expires_at: datetime | None
    """When it expires unless it is renewed; null if no process holds it."""


class MirrorView(View):
    """How old the recorded status is."""

    observed_at: datetime | None
    """The last contact of the controller with the cluster; null if there was none."""
    age_seconds: float | None
    """Seconds since `observedAt`."""
    stale: bool
    """Whether `ageSeconds` exceeds `staleAfterSeconds`, or the controller reports that it has no contact."""
    stale_after_seconds: float
    """The age from which status is stale."""


class QueueView(View):
    """The jobs that wait to be reconciled, as the controller last reported."""

    reconciles: int
    """The number of these jobs."""
    waiting_since: datetime | None
    """When the first of them began to wait; null if none waits."""


class FeedView(View):
    """The feed of changes."""

    position: str
    """The position of the last entry."""
    backlog: int
    """Changes that watches do not show yet, counted up to 100 000."""


class ContactState(StrEnum):
    """The controller's contact with the cluster. `Unknown`: no controller has reported recently."""

    CONNECTED = "Connected"
    SYNCING = "Syncing"
    UNREACHABLE = "Unreachable"
    WRONG_CLUSTER = "WrongCluster"
    UNKNOWN = "Unknown"


class CallLatencyView(View):
    """How long calls of the controller to the Kubernetes API took in the last minute, failed ones included."""

    p50: float | None
    """Seconds within which half of the calls ended; null if there were none."""
    p99: float | None
    """Seconds within which 99 % of the calls ended; null if there were none."""


class ClusterContactView(View):
    """The cluster as the controller sees it."""

    contact: ContactState
    """The contact of the controller with the cluster."""
    latency_seconds: CallLatencyView
    """How fast the cluster answers the controller."""


class ClockView(View):
    """The clocks of the installation. Deadlines do not follow the steps of any of them."""

    ok: bool
    """False if the clock of the database or of the controller's host is wrong."""
    message: str
    """Which clock is wrong; empty otherwise. Only admins of all namespaces get the whole message."""
    ahead_seconds: float
    """Seconds by which the times that jobgate records are ahead of the clock of the database."""


class FeaturesView(View):
    """The configuration that clients need to know."""

    autoscaler: bool
    """Whether the autoscaler resizes jobs; otherwise it only records what it would do."""
    pod_policy: Level
    """The level of the Pod Security Standards that pod templates must meet."""
    missing_namespaces: Literal["refuse", "wait"]
    """Whether an object of a namespace that the cluster does not have is refused, or waits for it."""
    max_replicas: int
    """The largest number of replicas of a job."""


class SystemView(View):
    """The state of the installation, which every process returns alike."""

    version: str
    """The version of jobgate in the process that answers."""
    schema_revision: str | None
    """The revision of the database schema; null while PostgreSQL does not answer."""
    database: DatabaseHealthView
    """The health of PostgreSQL."""
    controller: ControllerHealthView
    """The health of the controller."""
    lease: LeaseView | None
    """The lease of the controller; null while PostgreSQL does not answer."""
    mirror: MirrorView
    """The age of the recorded status."""
    queue: QueueView
    """The work that waits for the controller."""
    feed: FeedView | None
    """The feed of changes; null while PostgreSQL does not answer."""
    cluster: ClusterContactView
    """The contact of the controller with the cluster."""
    clock: ClockView | None
    """The clocks of the installation; null while PostgreSQL does not answer."""
    features: FeaturesView
    """The part of the configuration that concerns clients."""


class GrantView(View):
    """A role in some namespaces."""

    role: Role
    """What the caller may do in these namespaces."""
    namespaces: list[str] | None
    """The namespaces; null means all that jobgate serves."""


class CallerView(View):
    """The caller of the request, and what its token permits."""

    name: str
    """The actor that history and scale records name."""
    actor_id: str | None
    role: Role
    """The strongest role of the caller; `grants` says where the caller has it."""
    namespaces: list[str] | None
    """The namespaces that the token reaches; null if it reaches all that jobgate serves."""
    grants: list[GrantView]
    """The roles of the caller. A token of jobgate has one, a user of an OIDC issuer those of all groups."""
    administers: bool
    """Whether the caller is an admin of all namespaces."""
    expires_at: datetime | None
    """When the gateway ceases to accept the token; null if it stays valid until it is revoked."""


def caller_view(principal: Principal, served: NamespaceSet) -> CallerView:
    def names(reached: frozenset[str] | None) -> list[str] | None:
        return (served & NamespaceSet(only=reached)).names

    return CallerView(
        name=principal.actor.name,
        actor_id=principal.actor.id,
        role=principal.role,
        namespaces=names(principal.namespaces),
        grants=[GrantView(role=grant.role, namespaces=names(grant.namespaces)) for grant in principal.grants],
        administers=principal.administers,
        expires_at=principal.expires_at,
    )


def system_view(state: SystemState, services: Services, *, with_messages: bool) -> SystemView:
    """Return the view. `with_messages` includes the messages that only admins get."""
    stored, load, controller = state.stored, state.beat or NO_LOAD, state.controller
    message = controller.message if with_messages else _MESSAGES.get(controller.state, "")
    detail = state.database.detail if with_messages or state.database.ok else _NO_DATABASE
    return SystemView(
        version=VERSION,
        schema_revision=None if stored is None else stored.schema_revision,
        database=DatabaseHealthView(ok=state.database.ok, detail=detail),
        controller=ControllerHealthView(ok=controller.ok, state=controller.state, message=message),
        lease=None if stored is None else _lease(stored),
        mirror=_mirror(state, services),
        queue=QueueView(reconciles=load.queued, waiting_since=load.queued_since),
        feed=None if stored is None else _feed(stored),
        cluster=ClusterContactView(
            contact=_contact(state), latency_seconds=CallLatencyView(p50=load.call_p50, p99=load.call_p99)
        ),
        clock=None if stored is None else _clock(stored, with_messages=with_messages),
        features=FeaturesView(
            autoscaler=stored is not None and stored.autoscales,
            pod_policy=services.planner.policy.level,
            missing_namespaces="refuse" if services.refuses_missing_namespaces else "wait",
            max_replicas=services.planner.limits.max_replicas,
        ),
    )


def _lease(stored: StoredSystem) -> LeaseView:
    expires_at = stored.lease_expires_at
    return LeaseView(held=expires_at is not None, epoch=stored.lease_epoch, expires_at=expires_at)


def _clock(stored: StoredSystem, *, with_messages: bool) -> ClockView:
    fault = stored.clock_fault
    message = fault if with_messages or not fault else _WRONG_CLOCK
    return ClockView(ok=not fault, message=message, ahead_seconds=stored.clock_ahead)


def _feed(stored: StoredSystem) -> FeedView:
    position = Position(epoch=stored.feed_epoch, seq=stored.feed_last)
    return FeedView(position=str(position), backlog=stored.feed_backlog)


def _mirror(state: SystemState, services: Services) -> MirrorView:
    observed_at = state.freshness.observed_at
    # Another process recorded the time, and its clock may be ahead.
    age = None if observed_at is None else max(0.0, (services.clock.now() - observed_at).total_seconds())
    return MirrorView(
        observed_at=observed_at,
        age_seconds=age,
        stale=state.freshness.stale,
        stale_after_seconds=services.stale_after.total_seconds(),
    )


def _contact(state: SystemState) -> ContactState:
    match state.controller.state:
        case "Unreachable":
            return ContactState.UNREACHABLE
        case "WrongCluster":
            return ContactState.WRONG_CLUSTER
        case "Syncing":
            return ContactState.SYNCING
        # The heartbeat of a controller that has stopped says Running too, but is old.
        case "Running" if not state.freshness.stale:
            return ContactState.CONNECTED
    return ContactState.UNKNOWN
