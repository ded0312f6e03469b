import { Download } from "lucide-react";
import { Button } from "react-aria-components";
import type { Job } from "../../api/types";
import { CodeBlock } from "../../ui/code-block";
import { manifestOf, yamlOf } from "../../ui/yaml";
import { CopyButton } from "../copy-button";
import { CreatedObjects } from "./created-objects";

export function ManifestTab({ job }: { job: Job }) {
  const text = yamlOf(manifestOf(job));
  return (
    <div className="job-section">
      <section>
        <h2>Manifest</h2>
        <p className="secondary">As submitted and edited, with defaults filled in: generation {job.generation}.</p>
        <p className="job-buttons">
          <Button className="button" onPress={() => download(text, `${job.name}.yaml`)}>
            <Download aria-hidden size={14} />
            Download
          </Button>
          <CopyButton text={text} what="manifest" />
        </p>
        <CodeBlock label="Manifest" text={text} />
      </section>
      <CreatedObjects job={job} />
    </div>
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
