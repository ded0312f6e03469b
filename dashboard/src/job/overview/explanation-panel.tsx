import type { Job } from "../../api/types";
import { CodeBlock } from "../../ui/code-block";
import { toneOf } from "../../ui/phases";
import { When } from "../../ui/when";
import { explanation, type Failure, type Waiting } from "../explanation";

/** The phase of the job and its cause. */
export function ExplanationPanel({ job }: { job: Job }) {
  const { headline, detail, waiting, failure } = explanation(job);
  return (
    <section className={`job-explanation tone-${toneOf(job.status.phase)}`} aria-label="Phase and cause">
      <p className="job-headline">{headline}</p>
      <div className="job-explanation-body">
        {detail !== "" && <p>{detail}</p>}
        {waiting.length > 0 && <WaitingList waiting={waiting} />}
        {failure !== null && <FailureDetails failure={failure} />}
      </div>
    </section>
  );
}

function WaitingList({ waiting }: { waiting: readonly Waiting[] }) {
  return (
    <ul className="job-waiting">
      {waiting.map(({ code, message, replicas, since }) => (
        <li key={`${code} ${message} ${replicas}`}>
          <strong>{code}</strong>: {message}{" "}
          <span className="secondary">
            {replicas}
            {since !== null && (
              <>
                {replicas !== "" && ", "}since <When time={since} />
              </>
            )}
          </span>
        </li>
      ))}
    </ul>
  );
}

function FailureDetails({ failure }: { failure: Failure }) {
  const { sentence, isCause, at, message, lines } = failure;
  const when = (
    <>
      <When time={at} />
      {message !== "" && <>: {message}</>}
    </>
  );
  if (isCause) {
    return (
      <>
        <p>The attempt failed {when}</p>
        <LastLines lines={lines} />
      </>
    );
  }
  return (
    <details>
      <summary>
        The first failure of this job: {sentence}, {when}
      </summary>
      <LastLines lines={lines} />
    </details>
  );
}

function LastLines({ lines }: Pick<Failure, "lines">) {
  return (
    <>
      {lines === null && <p className="secondary">The last lines of its log are not stored.</p>}
      {lines?.length === 0 && <p className="secondary">Its log is empty.</p>}
      {lines !== null && lines.length > 0 && (
        <figure className="job-lines">
          <figcaption className="secondary">The last lines of its log</figcaption>
          <CodeBlock label="The last lines of its log" text={lines.join("\n")} />
        </figure>
      )}
    </>
  );
}
