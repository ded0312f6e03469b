import { useMutation } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { useState } from "react";
import { Button, Heading } from "react-aria-components";
import { ApiError } from "../api/problems";
import { useChangeRefusal } from "../session/caller";
import { ErrorNote } from "./errors";
import { GuardedButton } from "./guarded-button";
import { Window } from "./window";

interface DeleteButtonProps {
  /** Such as `the sample set digits`. */
  what: string;
  namespace: string;
  consequences: readonly string[];
  /** Delete the version that the page shows. */
  onDelete: () => Promise<unknown>;
  /** Read the object again, after the gateway has refused because it has changed. */
  onChanged: () => void;
}

/** Deletes an object after the user has read what follows from it. */
export function DeleteButton({ what, namespace, consequences, onDelete, onChanged }: DeleteButtonProps) {
  const [isOpen, setOpen] = useState(false);
  const deletion = useMutation({
    mutationFn: onDelete,
    onSuccess: () => setOpen(false),
    onError: (error) => error instanceof ApiError && error.status === 412 && onChanged(),
  });
  const isOutdated = deletion.error instanceof ApiError && deletion.error.status === 412;
  const open = (isNowOpen: boolean) => {
    deletion.reset();
    setOpen(isNowOpen);
  };
  return (
    <>
      <GuardedButton className="button danger" refusal={useChangeRefusal(namespace)} onPress={() => open(true)}>
        <Trash2 aria-hidden size={14} /> Delete
      </GuardedButton>
      <Window isOpen={isOpen} onClose={() => open(false)} role="alertdialog">
        <Heading slot="title">Delete {what}?</Heading>
        <ul>
          {consequences.map((consequence) => (
            <li key={consequence}>{consequence}</li>
          ))}
        </ul>
        {deletion.error !== null && <ErrorNote error={deletion.error} />}
        {isOutdated && <p>It has changed since this page read it. The page shows the new state now.</p>}
        <div className="dialog-buttons">
          <Button className="button" slot="close" autoFocus>
            Keep
          </Button>
          <Button className="button danger" isDisabled={deletion.isPending} onPress={() => deletion.mutate()}>
            Delete {what}
          </Button>
        </div>
      </Window>
    </>
  );
}
