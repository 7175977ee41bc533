/** A text that is not saved yet, kept in this browser so that neither a closed tab nor a crash loses it. Signing out leaves none. */
import { useState } from "preact/hooks";

interface Draft {
  text: string;
  /** The version it was begun from; 0: nothing is stored yet. */
  version: number;
  /** When it was last written, in ISO. */
  at: string;
}

const PREFIX = "relay.draft.";

/** Whose drafts are read and written: another owner's, left in this browser by a session that ran out, are not shown. */
let owner = "";

export function ownDrafts(email: string): void {
  owner = email;
}

/** As long as the page stands, also where the browser keeps nothing. */
const known = new Map<string, Draft>();

function readDraft(key: string): Draft | null {
  const here = known.get(key);
  if (here !== undefined) return here;
  try {
    const kept = JSON.parse(localStorage.getItem(PREFIX + key) ?? "null") as Draft | null;
    return typeof kept?.text === "string" && typeof kept.version === "number" ? kept : null;
  } catch {
    return null;
  }
}

/** Whether the browser kept it, so that the page may be left. */
function writeDraft(key: string, draft: Draft | null): boolean {
  if (draft === null) known.delete(key);
  else known.set(key, draft);
  try {
    if (draft === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, JSON.stringify(draft));
    return true;
  } catch {
    return draft === null;
  }
}

export function dropDrafts(): void {
  known.clear();
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(PREFIX)) localStorage.removeItem(key);
    }
  } catch {
    // Where nothing is kept there is nothing to drop.
  }
}

interface Drafting {
  draft: Draft | null;
  /** It was there when the page came to it. */
  isFound: boolean;
  isKept: boolean;
  /** null: there is none any more. */
  keep(next: Omit<Draft, "at"> | null): void;
}

export function useDraft(name: string): Drafting {
  const key = `${owner}:${name}`;
  const [state, setState] = useState(() => {
    const draft = readDraft(key);
    return { draft, isFound: draft !== null, isKept: true };
  });
  const keep = (next: Omit<Draft, "at"> | null): void => {
    const draft = next === null ? null : { ...next, at: new Date().toISOString() };
    const isKept = writeDraft(key, draft);
    setState((before) => ({ draft, isKept, isFound: draft !== null && before.isFound }));
  };
  return { ...state, keep };
}
