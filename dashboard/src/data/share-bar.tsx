/** A share from 0 to 1 as a bar. It needs a text beside it, because it has none for screen readers. */
export function ShareBar({ share }: { share: number }) {
  return (
    <svg className="progress" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect className="bucket-none" x={0} y={0} width={100} height={8} />
      <rect className="bucket-succeeded" x={0} y={0} width={share * 100} height={8} />
    </svg>
  );
}
