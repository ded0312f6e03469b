import { type Acting, identityInShort } from "./actors";
import "./actor.css";

interface ActorProps {
  actor: Acting;
  /** Whether there is no room for the whole identity. The page of the object shows it. */
  isShort?: boolean;
}

/** The name of an actor with its identity, because several actors may have one name. */
export function Actor({ actor: { name, id }, isShort = false }: ActorProps) {
  return (
    <span className="actor" title={isShort && id !== null ? `${name}\n${id}` : undefined}>
      <span className="actor-name">{name}</span>{" "}
      {id !== name && (
        <span className="actor-identity secondary">{isShort ? identityInShort(id) : identityOf(id)}</span>
      )}
    </span>
  );
}

function identityOf(id: string | null): string {
  return id ?? "identity not recorded";
}
