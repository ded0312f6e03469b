import { useMutation } from "@tanstack/react-query";
import { Send } from "lucide-react";
import { CopyButton } from "../job/copy-button";
import { usePage } from "../page-context";
import { hashOf } from "../routing/location";
import { useChangeRefusal } from "../session/caller";
import { CodeBlock } from "../ui/code-block";
import { ErrorNote } from "../ui/errors";
import { GuardedButton } from "../ui/guarded-button";
import { commandOf, FIRST_JOB, FIRST_NAMESPACE } from "./example";

/** What an empty table says: an example that a press submits, and the command that does the same. */
export function FirstJob() {
  const { transport } = usePage().api;
  const path = `api/v1/namespaces/${FIRST_NAMESPACE}/jobs`;
  const submission = useMutation({
    mutationFn: () => transport.post(path, { "Content-Type": "application/yaml" }, FIRST_JOB),
  });
  const refusal = useChangeRefusal(FIRST_NAMESPACE) ?? (submission.isPending ? "It is being submitted." : null);
  const command = commandOf(new URL(".", window.location.href).href);
  return (
    <div className="first-job">
      <p>No job has been submitted yet.</p>
      <h2>Submit an example</h2>
      <p className="secondary">
        Two replicas that print a line each second, in the namespace <code>{FIRST_NAMESPACE}</code>.
      </p>
      <CodeBlock label="Example" text={FIRST_JOB} />
      {submission.error !== null && <ErrorNote error={submission.error} />}
      <p className="first-job-ways">
        <GuardedButton className="button primary" refusal={refusal} onPress={() => submission.mutate()}>
          <Send aria-hidden size={14} /> Submit the example
        </GuardedButton>
        <a href={hashOf(["submit"])}>Submit a job of your own</a>
      </p>
      <h2>The same on the command line</h2>
      <CodeBlock label="Command" text={command} />
      <CopyButton text={command} what="command" />
    </div>
  );
}
