import { CircleCheck } from "lucide-react";
import { Button } from "react-aria-components";
import { hashOf } from "../routing/location";
import { ErrorNote } from "../ui/errors";
import type { Outcome, Stored } from "./sending";

/** What became of a submission, with a link to each stored object. */
export function Outcomes({
  outcomes,
  isDone,
  onAgain,
}: {
  outcomes: readonly Outcome[];
  isDone: boolean;
  onAgain: () => void;
}) {
  const stored = outcomes.flatMap((outcome) =>
    outcome.stored.map((each) => ({ ...each, resource: outcome.request.resource })),
  );
  return (
    <>
      {outcomes.map(({ error, request }) =>
        error === null ? null : (
          <ErrorNote key={`${request.namespace} ${request.resource} ${request.body}`} error={error} />
        ),
      )}
      {stored.length > 0 && (
        <div className="note tone-succeeded" role="status">
          <CircleCheck aria-hidden size={16} />
          <div>
            <p>
              {isDone
                ? "Submitted:"
                : "A part is submitted. Submit again to submit the rest; nothing is submitted twice."}
            </p>
            <ul>
              {stored.map((each) => (
                <li key={each.uid}>
                  <a href={addressOf(each, each.resource)}>
                    {each.kind} {each.namespace}/{each.name}
                  </a>
                </li>
              ))}
            </ul>
          </div>
          {isDone && (
            <Button className="button" onPress={onAgain}>
              Submit once more
            </Button>
          )}
        </div>
      )}
    </>
  );
}

function addressOf({ uid }: Stored, resource: string): string {
  if (resource === "jobs") return hashOf(["jobs", uid]);
  return resource === "samplesets" ? hashOf(["data", uid]) : hashOf(["data"], { show: "jobs", open: uid });
}
