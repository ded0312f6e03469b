/** Short names for the schemas of the OpenAPI document. */
import type { components, operations } from "./schema";

type Schemas = components["schemas"];

export type Job = Schemas["Job"];
export type JobSummary = Schemas["JobSummary"];
export type JobStatus = Schemas["JobStatus"];
export type JobPhase = Schemas["JobPhase"];
export type JobKind = Schemas["JobKind"];
export type Aggregate = Schemas["Aggregate"];
export type PendingReason = Schemas["PendingReason"];
export type Replica = Schemas["Replica"];
export type ReplicaPhase = Schemas["ReplicaPhase"];
export type Attempt = Schemas["Attempt"];
export type Container = Schemas["Container"];
export type HistoryEntry = Schemas["History"];
export type ScaleRecord = Schemas["ScaleRecord"];
export type PostedManifest = Schemas["PostedManifest"];
export type KubernetesEvent = Schemas["Event"];
export type SampleSet = Schemas["SampleSet"];
export type SampleSetSummary = Schemas["SampleSetSummary"];
export type SampleJobSummary = Schemas["SampleJobSummary"];
export type SampleJob = Schemas["SampleJob"];
export type Condition = Schemas["Condition"];
export type Queueing = Schemas["Queueing"];
export type JobQueue = Schemas["JobQueue"];
export type JobQueuePage = Schemas["JobQueuePage"];
export type QueuedJob = Schemas["QueuedJob"];
export type Quota = Schemas["Quota"];
export type UsagePage = Schemas["UsagePage"];
export type UsageGroup = Schemas["UsageGroup"];
export type Uses = Schemas["Uses"];
export type Dependents = Schemas["Dependents"];
export type DryRun = Schemas["DryRun"];
export type ClusterFinding = Schemas["ClusterFinding"];
export type ClusterCheck = Schemas["ClusterCheck"];
export type Plan = Schemas["Plan"];
export type System = Schemas["System"];
export type Caller = Schemas["Caller"];
export type AutoscalerPage = Schemas["AutoscalerPage"];
export type ScalingDecision = Schemas["ScalingDecision"];
export type Rehearsal = Schemas["Rehearsal"];
export type Capacity = Schemas["Capacity"];
export type Amount = Schemas["Amount"];
export type Verdict = Schemas["Verdict"];
export type WaitingJob = Schemas["WaitingJob"];
export type AutoscalerRun = Schemas["AutoscalerRun"];
export type Kind = Schemas["Kind"];
export type Oidc = Schemas["Oidc"];
export type OidcToken = Schemas["OidcToken"];
export type OidcTokenRequest = NonNullable<
  operations["create_oidc_token"]["requestBody"]
>["content"]["application/json"];
export type Problem = Schemas["Problem"];
export type FieldError = Schemas["FieldError"];
