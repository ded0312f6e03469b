import { Eye, FileUp, Send } from "lucide-react";
import { useState } from "react";
import { Button, FileTrigger } from "react-aria-components";
import type { ManifestDocument } from "./documents";
import type { Draft } from "./draft";
import { textsOf } from "./drop-area";
import { byKind, EXAMPLES } from "./examples";
import { DEFAULT_NAMESPACE } from "./requests";

interface ToolbarProps {
  draft: Draft;
  documents: readonly ManifestDocument[];
  onEdit: (change: { text?: string; namespace?: string }) => void;
  onFiles: (texts: string[]) => void;
  isSendable: boolean;
  /** Whether the draft is submitted, so that a second click of a double click does nothing. */
  isDone: boolean;
  onPreview: () => void;
  onSubmit: () => void;
}

export function Toolbar({ draft, documents, onEdit, onFiles, isSendable, isDone, onPreview, onSubmit }: ToolbarProps) {
  const [error, setError] = useState("");
  const read = (files: FileList | null) => {
    setError("");
    if (files !== null) textsOf(files).then(onFiles, (cause: Error) => setError(cause.message));
  };
  return (
    <>
      <div className="submit-toolbar">
        <NamespaceField draft={draft} documents={documents} onEdit={onEdit} />
        <ExampleField draft={draft} onEdit={onEdit} />
        <FileTrigger allowsMultiple acceptedFileTypes={[".yaml", ".yml", ".json"]} onSelect={read}>
          <Button className="button">
            <FileUp aria-hidden size={14} /> Open files
          </Button>
        </FileTrigger>
        <span className="submit-actions">
          <Button className="button" isDisabled={!isSendable} onPress={onPreview}>
            <Eye aria-hidden size={14} /> Preview
          </Button>
          <Button className="button primary" isDisabled={!isSendable || isDone} onPress={onSubmit}>
            <Send aria-hidden size={14} /> {isDone ? "Submitted" : "Submit"}
          </Button>
        </span>
      </div>
      {error !== "" && (
        <p className="note tone-failed" role="alert">
          {error}
        </p>
      )}
    </>
  );
}

/** The namespace of the manifests that name none. */
function NamespaceField({ draft, documents, onEdit }: Pick<ToolbarProps, "draft" | "documents" | "onEdit">) {
  const named = [...new Set(documents.map((each) => each.namespace).filter((each) => each !== null))];
  const isNamed = documents.length > 0 && documents.every((each) => each.namespace !== null);
  return (
    <label className="field">
      <span className="field-name">Namespace</span>
      <input
        value={isNamed ? named.join(", ") : draft.namespace}
        placeholder={DEFAULT_NAMESPACE}
        disabled={isNamed}
        autoComplete="off"
        spellCheck={false}
        title={isNamed ? "The manifest names its namespace." : "The namespace of manifests that name none."}
        onChange={(event) => onEdit({ namespace: event.target.value.trim() })}
      />
    </label>
  );
}

/** Replaces the text by an example, and can bring the replaced text back. */
function ExampleField({ draft, onEdit }: Pick<ToolbarProps, "draft" | "onEdit">) {
  const [replaced, setReplaced] = useState<string | null>(null);
  const shown = EXAMPLES.find((example) => example.text === draft.text);
  const choose = (id: string) => {
    const example = EXAMPLES.find((each) => each.id === id);
    if (example === undefined) return;
    const isOwn = draft.text.trim() !== "" && shown === undefined;
    if (isOwn) setReplaced(draft.text);
    onEdit({ text: example.text });
  };
  return (
    <>
      <label className="field">
        <span className="field-name">Start from</span>
        <select value={shown?.id ?? ""} onChange={(event) => choose(event.target.value)}>
          <option value="">an example…</option>
          {byKind(EXAMPLES).map(([kind, examples]) => (
            <optgroup key={kind} label={kind}>
              {examples.map((example) => (
                <option key={example.id} value={example.id} title={example.description}>
                  {example.name}
                </option>
              ))}
            </optgroup>
          ))}
        </select>
      </label>
      {replaced !== null && shown !== undefined && (
        <Button
          className="button"
          onPress={() => {
            onEdit({ text: replaced });
            setReplaced(null);
          }}
        >
          Bring my text back
        </Button>
      )}
    </>
  );
}
