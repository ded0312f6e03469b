import { Button, Dialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import { SHORTCUTS } from "./shortcuts";

/** The list of keyboard shortcuts. */
export function Help({ isOpen, onOpenChange }: { isOpen: boolean; onOpenChange: (isOpen: boolean) => void }) {
  return (
    <ModalOverlay className="overlay" isOpen={isOpen} onOpenChange={onOpenChange} isDismissable>
      <Modal className="modal">
        <Dialog className="dialog">
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
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}
