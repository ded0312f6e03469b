import type { ReactNode } from "react";
import { Dialog, Modal, ModalOverlay } from "react-aria-components";
import { Part } from "./part";

interface WindowProps {
  /** Called when the user closes the window. Without it, the user cannot close it. */
  onClose?: () => void;
  isOpen?: boolean;
  /** Whether a click outside closes the window. It must not lose what the user has typed. */
  hasInput?: boolean;
  role?: "dialog" | "alertdialog";
  overlayClassName?: string;
  className?: string;
  children: ReactNode;
}

/** A dialog above the page. If its content fails, the page and the dialog stay. */
export function Window({ onClose, isOpen = true, hasInput = false, role = "dialog", ...props }: WindowProps) {
  const { overlayClassName = "", className = "modal", children } = props;
  return (
    <ModalOverlay
      className={`overlay ${overlayClassName}`}
      isOpen={isOpen}
      onOpenChange={(isNowOpen) => !isNowOpen && onClose?.()}
      isDismissable={onClose !== undefined && !hasInput}
      isKeyboardDismissDisabled={onClose === undefined}
    >
      <Modal className={className}>
        <Dialog className="dialog" role={role}>
          <Part what="the dialog">{children}</Part>
        </Dialog>
      </Modal>
    </ModalOverlay>
  );
}
