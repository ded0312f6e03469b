import { CircleAlert } from "lucide-react";
import { useState } from "react";
import { Button } from "react-aria-components";

/**
 * What is shown instead of a part of the page that could not be loaded, or that has failed.
 *
 * It reloads the page only while the gateway answers: the browser would replace the page by an error of its own.
 */
export function FailedPart({ what, error }: { what: string; error: Error }) {
  const [state, setState] = useState<"idle" | "asking" | "away">("idle");
  const reload = async () => {
    setState("asking");
    if (await isServed()) window.location.reload();
    else setState("away");
  };
  return (
    <div className="note tone-failed failed-part" role="alert">
      <CircleAlert aria-hidden size={16} />
      <div>
        <p>
          {error instanceof LoadError
            ? `The page could not load ${what}: the gateway does not answer, or it was upgraded since this page was loaded.`
            : `The page failed to show ${what}: ${error.message}`}
        </p>
        {state === "away" && <p>The gateway does not serve the page now. Nothing was reloaded; try again later.</p>}
      </div>
      <Button className="button" isDisabled={state === "asking"} onPress={() => void reload()}>
        Reload the page
      </Button>
    </div>
  );
}

/** A part of the page could not be loaded. The cause is the error of the browser. */
export class LoadError extends Error {
  constructor(cause: unknown) {
    super("a part of the page could not be loaded", { cause });
  }
}

async function isServed(): Promise<boolean> {
  try {
    const page = new URL(".", window.location.href);
    const answer = await fetch(page, { headers: { Accept: "text/html" }, cache: "no-store" });
    return answer.ok;
  } catch {
    return false;
  }
}
