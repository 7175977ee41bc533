/** Unsaved text, stored in this browser so that a closed tab or a crash does not lose it. Signing out deletes all drafts. */
import { useState } from "preact/hooks";

interface Draft {
  text: string;
  /** Version that the draft is based on; 0: none is stored yet. */
  version: number;
  /** ISO time of the last change. */
  at: string;
}

const PREFIX = "relay.draft.";

/** Owner whose drafts are read and written. Drafts that another owner left in this browser after an expired session stay hidden. */
let owner = "";

export function ownDrafts(email: string): void {
  owner = email;
}

/** Drafts in memory, which also work if the browser stores nothing. */
const known = new Map<string, Draft>();

function readDraft(key: string): Draft | null {
  const stored = known.get(key);
  if (stored !== undefined) return stored;
  try {
    const kept = JSON.parse(localStorage.getItem(PREFIX + key) ?? "null") as Draft | null;
    return typeof kept?.text === "string" && typeof kept.version === "number" ? kept : null;
  } catch {
    return null;
  }
}

/** Returns whether the browser stored the draft, so that the user can leave the page. */
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
    for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
    // The requests in view of the builder.
    sessionStorage.clear();
  } catch {
    // There is nothing to delete if there is no storage.
  }
}

interface Drafting {
  draft: Draft | null;
  /** True if the draft existed when the page opened. */
  isFound: boolean;
  isKept: boolean;
  /** Stores a draft. null deletes it. */
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
