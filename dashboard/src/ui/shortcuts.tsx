import { useEffect, useRef } from "react";

/** The keys of the page and what they do, as the help lists them. */
export const SHORTCUTS = [
  ["/", "Search"],
  ["j, k", "Next or previous row, or line of a whole log"],
  ["Enter", "Open the row"],
  ["l", "Logs of the row, or of the open job"],
  ["x", "Select the row"],
  ["n, N", "Next or previous match in a log"],
  ["w", "Wrap the lines of a log"],
  ["f", "Follow a log"],
  ["g j", "Jobs"],
  ["g s", "Submit"],
  ["g d", "Data"],
  ["g q", "Queues"],
  ["g u", "Usage"],
  ["g a", "Autoscaler"],
  ["g y", "System"],
  ["?", "This help"],
] as const;

export type Bindings = Readonly<Record<string, () => void>>;

/**
 * Call the function bound to a key, or to `g` and a key, while the component is shown.
 *
 * Keys that the user types into a field, and keys with Ctrl, Alt or Meta, stay with the browser.
 */
export function useShortcuts(bindings: Bindings): void {
  const current = useRef(bindings);
  current.current = bindings;
  useEffect(() => {
    let prefix = "";
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || isTyping(event)) return;
      const action = current.current[prefix + event.key];
      prefix = event.key === "g" && prefix === "" ? "g " : "";
      if (action === undefined) return;
      event.preventDefault();
      action();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}

function isTyping(event: KeyboardEvent): boolean {
  // In an open shadow root, as that of the editor, the target of the event is the host.
  const target = event.composedPath()[0];
  if (!(target instanceof HTMLElement)) return false;
  const isField = target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName);
  const isControl = event.key === "Enter" && target.closest("a, button, [role=button]") !== null;
  return isField || isControl || target.closest("[role=dialog]") !== null;
}
