import { CircleAlert } from "lucide-react";
import { Button } from "react-aria-components";
import { ApiError } from "../api/problems";

/** Show an error where the data would be, with its field errors. */
export function ErrorNote({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  // The dialog above asks for a sign-in, and everything is read again after it.
  if (error instanceof ApiError && error.status === 401) return <p className="loading">Sign in to see this.</p>;
  const errors = error instanceof ApiError ? error.errors : [];
  return (
    <div className="note tone-failed" role="alert">
      <CircleAlert aria-hidden size={16} />
      <div>
        <p>{error.message}</p>
        {errors.length > 0 && (
          <ul>
            {errors.map((each) => (
              <li key={`${each.pointer} ${each.code}`}>
                <code>{each.pointer || "/"}</code> {each.detail}
                {each.accepted !== null && <> Accepted: {each.accepted}</>}
              </li>
            ))}
          </ul>
        )}
      </div>
      {onRetry !== undefined && (
        <Button className="button" onPress={onRetry}>
          Try again
        </Button>
      )}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p className="loading" role="status">
      Loading {what}…
    </p>
  );
}
