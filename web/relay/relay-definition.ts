/**
 * Editor of a relay's definition. The text is stored in this browser until it is saved or discarded. A save sends the
 * version that it is based on, and a conflict shows both versions before anything is saved.
 */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Problem, Warning } from "../../src/base/refusal.ts";
import type { Relay, SavedRelay } from "../base/answer.ts";
import { ApiError, call, RawJson, sentenceOf } from "../base/api.ts";
import { writeExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import { apiPath, type Place } from "../base/place.ts";
import { navigate, useRoute } from "../base/route.ts";
import { Workbench } from "../builder/workbench.ts";
import { afterMaking } from "../component/create-item.ts";
import { Notice } from "../component/notice.ts";
import { Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { notifyDone } from "../component/toast.ts";
import { useDraft } from "../editor/draft.ts";
import { findJsonProblem } from "../editor/json-problem.ts";
import { ChangedCases, findChangedCases } from "./changed-cases.ts";
import { RelayConflict } from "./relay-conflict.ts";

/** A save that waits for an answer, because it changes the results of cases. */
interface ChangedSave {
  cases: Awaited<ReturnType<typeof findChangedCases>>;
  version: number;
  what: string;
}

const NONE: readonly Problem[] = [];

export function RelayDefinition({
  place,
  relay,
  warned,
  onSaved,
}: {
  place: Place;
  relay: Relay;
  /** Warnings of the last save. */
  warned: readonly Warning[];
  onSaved: (saved: SavedRelay) => void;
}): View {
  const stored = writeExact(relay.definition, 2);
  const { draft, isFound, isKept, keep } = useDraft(relay.id);
  const [problems, setProblems] = useState(NONE);
  const [error, setError] = useState<string | null>(null);
  const [isSaving, setSaving] = useState(false);
  const [conflict, setConflict] = useState<Relay | null>(null);
  const [changed, setChanged] = useState<ChangedSave | null>(null);
  const [file, setFile] = useState<string | null>(null);
  const text = draft?.text ?? stored;
  const written = useRef(text);
  written.current = text;
  const isChanged = draft !== null && draft.text !== stored;
  const { query } = useRoute();
  const [replaced, by] = [query.get("replace"), query.get("by")];
  useEffect(() => {
    if (replaced !== null && by !== null && draft === null)
      write(replaceName(stored, replaced, by), relay.version);
  }, []);

  const write = (next: string, version: number): void => {
    keep(next === stored ? null : { text: next, version });
    setProblems(NONE);
    setError(null);
  };
  const throwAway = (): void => {
    const before = draft;
    keep(null);
    setProblems(NONE);
    setError(null);
    if (before !== null) notifyDone("Draft discarded.", async () => keep(before));
  };
  useLayoutEffect(() => {
    if (!isChanged || isKept) return;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isChanged, isKept]);

  const save = async (version: number, what = text, mayChangeCases = false): Promise<void> => {
    if (isSaving) return;
    const broken = findJsonProblem(what);
    if (broken !== null) return setProblems([{ field: "", message: broken.message }]);
    setSaving(true);
    setError(null);
    setConflict(null);
    setChanged(null);
    const cases = mayChangeCases ? [] : await findChangedCases(place, relay.name, what);
    if (cases.length > 0) {
      setChanged({ cases, version, what });
      setSaving(false);
      return;
    }
    const path = apiPath(place, "relays", relay.name);
    try {
      const body = new RawJson(`{"definition":${what},"version":${version}}`);
      const saved = await call<SavedRelay>("PUT", path, body);
      // Keeps the edits that the user made during the save.
      const isOn = written.current !== text;
      keep(isOn ? { text: written.current, version: saved.relay.version } : null);
      setFile(saved.file ?? null);
      invalidate(`${path}/versions`);
      onSaved(saved);
      const next = replaced === null ? null : afterMaking(place, query);
      if (next !== null) navigate(next);
      notifyDone(`Saved ${relay.name} as version ${saved.relay.version}${formatWritten(saved)}.`);
    } catch (thrown) {
      const problem = thrown instanceof ApiError ? thrown : null;
      if (what !== text) write(what, draft?.version ?? relay.version);
      if (problem?.code === "version_conflict") await showConflict(path, version, sentenceOf(thrown));
      else if (problem !== null && problem.problems.length > 0) setProblems(problem.problems);
      else setError(sentenceOf(thrown));
    }
    setSaving(false);
  };
  const showConflict = async (path: string, version: number, sentence: string): Promise<void> => {
    try {
      const theirs = (await call<{ relay: Relay }>("GET", path)).relay;
      // The conflict comes from the relay's file if there is no newer version.
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
        ${isChanged && html`<button type="button" onClick=${throwAway}>Discard changes</button>`}
      </div>
    </div>
    ${isChanged && isFound && html`<${Notice} kind="info">This is your draft from <${Ago} at=${draft.at} />, started from version ${draft.version}; it is saved in this browser.<//>`}
    ${isChanged && !isKept && html`<${Notice} kind="warn">This browser cannot save a draft. Save before you leave the page.<//>`}
    ${isChanged && draft.version !== relay.version && html`<${Notice} kind="warn">Version ${relay.version} was saved after you started to edit. When you save, you see both versions.<//>`}
    ${isChanged && replaced !== null && by !== null && html`<${Notice} kind="info">The draft has <code>${by}</code> instead of <code>${replaced}</code>. Save it to use it.<//>`}
    ${!isChanged && file !== null && html`<${Notice} kind="good">The last save wrote <code>${file}</code>, which is active now.<//>`}
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <${Workbench} place=${place} text=${text} refused=${problems} warned=${warned} onSave=${() => isChanged && save(draft.version)}
      onText=${(next: string) => write(next, draft?.version ?? relay.version)} relay=${relay.name} isChanged=${isChanged} seenKey=${relay.id}
      actions=${html`<button data-needs="edit_definitions" type="button" class="primary" disabled=${!isChanged} onClick=${() => save(draft?.version ?? relay.version)}>${isSaving ? "Saving…" : "Save"}</button>`} />
    ${
      changed !== null &&
      html`<${ChangedCases} changed=${changed.cases} onClose=${() => setChanged(null)} onSave=${() => void save(changed.version, changed.what, true)} />`
    }
    ${
      conflict !== null &&
      html`<${RelayConflict} mine=${text} theirs=${conflict} theirText=${writeExact(conflict.definition, 2)} onClose=${() => setConflict(null)}
        onMine=${(ownText: string) => save(conflict.version, ownText)}
        onEdit=${(ownText: string) => {
          // The user saw both versions, so the next save replaces the stored one.
          setConflict(null);
          onSaved({ relay: conflict, warnings: [] });
          keep({ text: ownText, version: conflict.version });
        }}
        onTheirs=${() => {
          setConflict(null);
          throwAway();
          onSaved({ relay: conflict, warnings: [] });
        }} />`
    }
  </section>`;
}

/** Replaces the name of a catalog item in the text of a definition. */
function replaceName(text: string, name: string, by: string): string {
  const named = new RegExp(
    `("(?:collection|product|plan|entitlement)"\\s*:\\s*"(?:access:)?)${name.replace(/\W/g, "\\$&")}"`,
    "g",
  );
  return text.replaceAll(named, (_, before: string) => `${before}${by}"`);
}

/** Returns the file that the save wrote, which exists only in local development. */
function formatWritten({ file }: { file?: string | undefined }): string {
  return file === undefined ? "" : `, and wrote ${file}`;
}
