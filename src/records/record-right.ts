/**
 * Whose a record is and who may see or change it, by the kind of its collection. The app itself (a secret key, the dashboard, a relay,
 * a receipt) may always; these rules are for people, and for what an address must hold.
 *
 * | kind      | owner                                   | recipient | read by                 | written by a person |
 * |-----------|-----------------------------------------|-----------|-------------------------|---------------------|
 * | shared    | none, or whom the app names             | optional  | anyone signed in        | never               |
 * | private   | a person; none: the app's own           | optional  | owner, recipient        | the owner           |
 * | addressed | none: app-owned                         | required  | recipient               | never               |
 * | direct    | a person; none: from the app            | required  | owner, recipient        | the owner           |
 */
import { type Problem, Refusal } from "../ground/refusal.ts";
import type { CollectionKind } from "./collection-definition.ts";

export interface Address {
  ownerId: string | null;
  recipientId: string | null;
}

/** Problems of an address for a kind of collection. */
export function checkAddress(kind: CollectionKind, address: Address): Problem[] {
  const problems: Problem[] = [];
  if (kind === "addressed" && address.ownerId !== null) {
    const message = "`owner` is not for an addressed collection, whose records are the app's: leave it out.";
    problems.push({ field: "owner", message });
  }
  if ((kind === "addressed" || kind === "direct") && address.recipientId === null) {
    const message = `\`to\` is missing: a record of ${kind === "direct" ? "a direct" : "an addressed"} collection needs the person it is for.`;
    problems.push({ field: "to", message });
  }
  return problems;
}

export function mayRead(kind: CollectionKind, address: Address, personId: string): boolean {
  return kind === "shared" || address.ownerId === personId || address.recipientId === personId;
}

export function mayWrite(kind: CollectionKind, address: Address, personId: string): boolean {
  return (kind === "private" || kind === "direct") && address.ownerId === personId;
}

/** The address of a record a person writes: they are its owner. Refuses with `forbidden` where only the app writes. */
export function addressByPerson(kind: CollectionKind, personId: string, recipientId: string | null): Address {
  const address = { ownerId: personId, recipientId };
  if (mayWrite(kind, address, personId) && (kind === "direct" || recipientId === null)) return address;
  throw new Refusal(
    "forbidden",
    kind === "private"
      ? "A record of a private collection is for its owner alone: leave `to` out."
      : `Records of ${kind === "addressed" ? "an addressed" : "a shared"} collection are written by the app, not by a signed-in person.`,
  );
}
