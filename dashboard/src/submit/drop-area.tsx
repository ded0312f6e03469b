import { type DragEvent, type ReactNode, useState } from "react";

/** The largest body that the gateway accepts by default. */
const MAX_BYTES = 3 * 1024 * 1024;

/** Return the texts of the files. */
export async function textsOf(files: Iterable<File>): Promise<string[]> {
  const chosen = [...files];
  const bytes = chosen.reduce((sum, file) => sum + file.size, 0);
  if (bytes > MAX_BYTES) throw new Error("the files have more than 3 MiB, which is more than a gateway accepts");
  return Promise.all(chosen.map((file) => file.text()));
}

/** Takes files that are dropped on it, in place of the editor, which would insert them at the pointer. */
export function DropArea({ onTexts, children }: { onTexts: (texts: string[]) => void; children: ReactNode }) {
  const [isOver, setOver] = useState(false);
  const [error, setError] = useState("");
  const onDrop = (event: DragEvent) => {
    setOver(false);
    if (event.dataTransfer.files.length === 0) return;
    event.preventDefault();
    event.stopPropagation();
    setError("");
    textsOf(event.dataTransfer.files).then(onTexts, (cause: Error) => setError(cause.message));
  };
  const onDragOver = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    setOver(true);
  };
  return (
    // Files can also be opened with the button of the toolbar.
    // biome-ignore lint/a11y/noStaticElementInteractions: see above
    <div
      className={isOver ? "drop-area is-over" : "drop-area"}
      onDragOverCapture={onDragOver}
      onDragLeave={() => setOver(false)}
      onDropCapture={onDrop}
    >
      {error !== "" && (
        <p className="note tone-failed" role="alert">
          {error}
        </p>
      )}
      {children}
    </div>
  );
}
