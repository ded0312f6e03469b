import { type ReactNode, useId } from "react";

interface GuardedButtonProps {
  /** Why the button does nothing; null if it does. */
  refusal: string | null;
  className?: string;
  onPress: () => void;
  children: ReactNode;
}

/** A button that says why it is disabled. It keeps the focus then, so that everybody can learn the reason. */
export function GuardedButton({ refusal, className = "button", onPress, children }: GuardedButtonProps) {
  const description = useId();
  return (
    <>
      <button
        type="button"
        className={className}
        aria-disabled={refusal !== null}
        aria-describedby={refusal === null ? undefined : description}
        title={refusal ?? undefined}
        onClick={() => refusal === null && onPress()}
      >
        {children}
      </button>
      {refusal !== null && (
        <span id={description} className="visually-hidden">
          {refusal}
        </span>
      )}
    </>
  );
}
