import { ShareBar } from "./share-bar";
import { type CacheFigures, cachedShare, cachedText } from "./sizes";

/** The share of the data that is cached, as a bar with its sizes. */
export function CachedBar({ cache }: { cache: CacheFigures | null }) {
  if (cache === null) return <span className="secondary">not reported yet</span>;
  const text = cachedText(cache);
  return (
    <span className="cached-bar" title={text}>
      <ShareBar share={cachedShare(cache)} />
      <span className="secondary">{text}</span>
    </span>
  );
}
