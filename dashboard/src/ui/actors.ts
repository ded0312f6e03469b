/** Who acts: a name for people, and an identity that no other actor can have. Pure. */

export interface Acting {
  name: string;
  /** Such as `token:<id>` or `user:<issuer>#<sub>`; null if an earlier version recorded only the name. */
  id: string | null;
}

/** Return what tells actors of one name apart in a narrow column: of a user, the subject without its issuer. */
export function identityInShort(id: string | null): string {
  if (id === null) return "identity not recorded";
  // An issuer has no fragment, so the first # ends it.
  return id.startsWith("user:") ? `user:#${id.slice(id.indexOf("#") + 1)}` : id;
}

/** Return the actor as one text, for sentences. */
export function actorText({ name, id }: Acting): string {
  return id === name ? name : `${name} (${id ?? "identity not recorded"})`;
}

export function creatorOf({ createdBy, createdById }: { createdBy: string; createdById: string | null }): Acting {
  return { name: createdBy, id: createdById };
}

export function actorOf({ actor, actorId }: { actor: string; actorId: string | null }): Acting {
  return { name: actor, id: actorId };
}
