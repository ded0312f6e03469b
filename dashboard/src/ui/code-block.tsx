import "./code-block.css";

/** Text in its own lines. It scrolls if it is too large, and the keyboard reaches it for that. */
export function CodeBlock({ label, text }: { label: string; text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
    <section className="code-block" tabIndex={0} aria-label={label}>
      <pre>{text}</pre>
    </section>
  );
}
