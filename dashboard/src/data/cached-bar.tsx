import { type CacheFigures, cachedShare, cachedText } from "./sizes";

/** The share of the data that is cached, as a bar with its sizes. */
export function CachedBar({ cache }: { cache: CacheFigures | null }) {
  if (cache === null) return <span className="secondary">not reported yet</span>;
  const text = cachedText(cache);
  return (
    <span className="cached-bar" title={text}>
      {/* The text beside it says the same. */}
      <svg className="progress" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect className="bucket-none" x={0} y={0} width={100} height={8} />
        <rect className="bucket-succeeded" x={0} y={0} width={cachedShare(cache) * 100} height={8} />
      </svg>
      <span className="secondary">{text}</span>
    </span>
  );
}
