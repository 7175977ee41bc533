/**
 * Edits a relay's definition. What is written stays while one looks elsewhere; a save carries the version it was read at, and a conflict
 * is shown before anything is decided.
 */

import { useEffect, useState } from "preact/hooks";
import type { Problem } from "../../src/ground/refusal.ts";
import { DefinitionEditor } from "../editor/definition-editor.ts";
import { findJsonProblem } from "../editor/json-problem.ts";
import type { Relay, SavedRelay } from "../ground/answer.ts";
import { ApiError, call, RawJson, sentenceOf } from "../ground/api.ts";
import { writeExact } from "../ground/exact-json.ts";
import { html, type View } from "../ground/html.ts";
import { apiPath, type Place } from "../ground/place.ts";
import { Notice } from "../part/notice.ts";
import { Sentence } from "../part/sentence.ts";
import { tellDone } from "../part/toast.ts";
import { RelayConflict } from "./relay-conflict.ts";

interface Draft {
  text: string;
  /** The version it was begun from. */
  version: number;
}

/** Unsaved texts by relay id. */
const drafts = new Map<string, Draft>();

export function RelayDefinition({
  place,
  relay,
  onSaved,
}: {
  place: Place;
  relay: Relay;
  onSaved: (saved: SavedRelay) => void;
}): View {
  const stored = writeExact(relay.definition, 2);
  const [draft, setDraft] = useState<Draft | null>(() => drafts.get(relay.id) ?? null);
  const [problems, setProblems] = useState<readonly Problem[]>([]);
  const [error, setError] = useState<string | null>(null);
  const [isSaving, setSaving] = useState(false);
  const [conflict, setConflict] = useState<Relay | null>(null);
  const text = draft?.text ?? stored;
  const isChanged = draft !== null && draft.text !== stored;

  const keep = (next: Draft | null): void => {
    if (next === null) drafts.delete(relay.id);
    else drafts.set(relay.id, next);
    setDraft(next);
    setProblems([]);
    setError(null);
  };
  useEffect(() => {
    if (!isChanged) return;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isChanged]);

  const save = async (version: number): Promise<void> => {
    if (isSaving || findJsonProblem(text) !== null) return;
    setSaving(true);
    setError(null);
    setConflict(null);
    const path = apiPath(place, "relays", relay.name);
    try {
      const saved = await call<SavedRelay>(
        "PUT",
        path,
        new RawJson(`{"definition":${text},"version":${version}}`),
      );
      keep(null);
      onSaved(saved);
      tellDone(`Saved ${relay.name} as version ${saved.relay.version}${sayWritten(saved)}.`);
    } catch (thrown) {
      const problem = thrown instanceof ApiError ? thrown : null;
      if (problem?.code === "version_conflict") await showConflict(path, version, sentenceOf(thrown));
      else if (problem !== null && problem.problems.length > 0) setProblems(problem.problems);
      else setError(sentenceOf(thrown));
    }
    setSaving(false);
  };
  const showConflict = async (path: string, version: number, sentence: string): Promise<void> => {
    try {
      const theirs = (await call<{ relay: Relay }>("GET", path)).relay;
      // Where no newer version stands, it is the relay's file that says something else.
      if (theirs.version === version) setError(sentence);
      else setConflict(theirs);
    } catch {
      setError(sentence);
    }
  };

  return html`<section class="block" aria-label="Definition">
    <div class="block-head"><h2>Definition</h2><span class="quiet">version ${relay.version}</span>
      ${isChanged && html`<span class="unsaved">Unsaved changes</span>`}
      <div class="page-actions">
        ${isChanged && html`<button type="button" onClick=${() => keep(null)}>Revert</button>`}
        <button type="button" class="primary" disabled=${!isChanged || isSaving} onClick=${() => save(draft?.version ?? relay.version)}>
          ${isSaving ? "Saving…" : "Save"}</button>
      </div>
    </div>
    ${isChanged && draft.version !== relay.version && html`<${Notice} kind="warn">Version ${relay.version} was saved since you began to edit; saving shows you both.<//>`}
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <${DefinitionEditor} place=${place} text=${text} refused=${problems} onSave=${() => isChanged && save(draft.version)}
      onText=${(next: string) => keep(next === stored ? null : { text: next, version: draft?.version ?? relay.version })} />
    ${
      conflict !== null &&
      html`<${RelayConflict} mine=${text} theirs=${conflict} theirText=${writeExact(conflict.definition, 2)} onClose=${() => setConflict(null)}
        onMine=${() => save(conflict.version)}
        onTheirs=${() => {
          setConflict(null);
          keep(null);
          onSaved({ relay: conflict, warnings: [] });
        }} />`
    }
  </section>`;
}

/** In local development: where the save was written to. */
function sayWritten({ file }: { file?: string | undefined }): string {
  return file === undefined ? "" : `, and wrote ${file}`;
}
