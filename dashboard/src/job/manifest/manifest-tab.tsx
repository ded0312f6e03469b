import { useQuery } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useState } from "react";
import { Button, ToggleButton, ToggleButtonGroup } from "react-aria-components";
import type { Job } from "../../api/types";
import { usePage } from "../../page-context";
import { CodeBlock } from "../../ui/code-block";
import { ErrorNote, Loading } from "../../ui/errors";
import { manifestOf, yamlOf } from "../../ui/yaml";
import { CopyButton } from "../copy-button";
import { readPostedManifest } from "../reads";
import { CreatedObjects } from "./created-objects";
import { describe, FORMS, type ManifestForm } from "./forms";

export function ManifestTab({ job }: { job: Job }) {
  const [form, setForm] = useState<ManifestForm>("posted");
  return (
    <div className="job-section">
      <section>
        <h2>Manifest</h2>
        <ToggleButtonGroup
          aria-label="Form of the manifest"
          className="job-buttons"
          disallowEmptySelection
          selectedKeys={[form]}
          onSelectionChange={(keys) => setForm([...keys][0] as ManifestForm)}
        >
          {FORMS.map(([id, name]) => (
            <ToggleButton key={id} id={id} className="chip">
              {name}
            </ToggleButton>
          ))}
        </ToggleButtonGroup>
        {form === "posted" ? <Posted job={job} /> : <Manifest job={job} form={form} manifest={manifestOf(job)} />}
      </section>
      <CreatedObjects job={job} />
    </div>
  );
}

function Posted({ job }: { job: Job }) {
  const { client } = usePage().api;
  const { data, error, refetch } = useQuery({
    // Every edit that is stored changes the manifest; a change of the status does not.
    queryKey: ["job", job.uid, "posted-manifest", job.generation, manifestOf(job)],
    queryFn: ({ signal }) => readPostedManifest(client, job.uid, signal),
  });
  if (error !== null) return <ErrorNote error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <Loading what="the manifest" />;
  return <Manifest job={job} form="posted" manifest={data.manifest} />;
}

interface ManifestProps {
  job: Job;
  form: ManifestForm;
  manifest: object | null;
}

function Manifest({ job, form, manifest }: ManifestProps) {
  const text = manifest === null ? null : yamlOf(manifest);
  return (
    <>
      <p className="secondary">{describe(form, text !== null, job.generation)}</p>
      {text !== null && (
        <>
          <p className="job-buttons">
            <Button className="button" onPress={() => download(text, `${job.name}.yaml`)}>
              <Download aria-hidden size={14} />
              Download
            </Button>
            <CopyButton text={text} what="manifest" />
          </p>
          <CodeBlock label="Manifest" text={text} />
        </>
      )}
    </>
  );
}

function download(text: string, name: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/yaml" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
