import { Button, Heading } from "react-aria-components";
import { SHORTCUTS } from "./shortcuts";
import { Window } from "./window";

/** The list of keyboard shortcuts. */
export function Help({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <Window isOpen={isOpen} onClose={onClose}>
      <Heading slot="title">Keyboard shortcuts</Heading>
      <dl className="shortcuts">
        {SHORTCUTS.map(([keys, effect]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{effect}</dd>
          </div>
        ))}
      </dl>
      <Button slot="close" className="button">
        Close
      </Button>
    </Window>
  );
}
