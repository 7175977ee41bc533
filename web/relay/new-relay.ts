/** Makes a relay from a definition; what the service made for it is shown once, before anything else. */

import { useState } from "preact/hooks";
import type { Problem } from "../../src/ground/refusal.ts";
import type { CheckedDefinition } from "../../src/http/relay.ts";
import { DefinitionEditor } from "../editor/definition-editor.ts";
import { findJsonProblem } from "../editor/json-problem.ts";
import type { Page, SavedRelay } from "../ground/answer.ts";
import { ApiError, call, RawJson, sentenceOf } from "../ground/api.ts";
import { writeExact } from "../ground/exact-json.ts";
import { html, type View } from "../ground/html.ts";
import type { PageProps } from "../ground/page.ts";
import { apiPath, pagePath } from "../ground/place.ts";
import { useLoad } from "../ground/use-load.ts";
import { Notice } from "../part/notice.ts";
import { PageHead } from "../part/page-head.ts";
import { Sentence } from "../part/sentence.ts";
import { WarningList } from "../part/warning-list.ts";
import { EXAMPLES, type RelayExample } from "./relay-example.ts";
import { RelayMade } from "./relay-made.ts";

/** A template as the service offers it: an example with what is left to do. */
interface Offered extends Omit<RelayExample, "hint"> {
  summary: string;
  steps: string[];
}

const NO_PROBLEMS: readonly Problem[] = [];

export function NewRelayPage({ place }: PageProps): View {
  const offered = useLoad<Page<Offered>>("/api/relay-templates").data?.items ?? [];
  const starts: readonly (RelayExample & { steps?: string[] })[] = [
    ...EXAMPLES,
    ...offered.map(({ summary, ...one }) => ({ ...one, hint: summary })),
  ];
  const [chosen, setChosen] = useState<(typeof starts)[number]>(EXAMPLES[0]);
  const [text, setText] = useState(() => writeExact(EXAMPLES[0].definition, 2));
  const [secret, setSecret] = useState("");
  const [checked, setChecked] = useState<CheckedDefinition | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState<"validate" | "create" | null>(null);
  const [saved, setSaved] = useState<SavedRelay | null>(null);

  const change = (next: string): void => {
    setText(next);
    setChecked(null);
    setError(null);
  };
  const act = async (what: "validate" | "create", work: () => Promise<void>): Promise<void> => {
    if (busy !== null || findJsonProblem(text) !== null) return;
    setBusy(what);
    setError(null);
    try {
      await work();
    } catch (thrown) {
      const problems = thrown instanceof ApiError ? [...thrown.problems] : [];
      if (problems.length > 0) setChecked({ problems, warnings: [] });
      else setError(sentenceOf(thrown));
    }
    setBusy(null);
  };
  const validate = (): Promise<void> =>
    act("validate", async () => {
      const body = new RawJson(`{"definition":${text}}`);
      setChecked(await call<CheckedDefinition>("POST", apiPath(place, "relays", "validate"), body));
    });
  const create = (): Promise<void> =>
    act("create", async () => {
      const pasted = secret === "" ? "" : `,"secret":${JSON.stringify(secret)}`;
      setSaved(
        await call<SavedRelay>(
          "POST",
          apiPath(place, "relays"),
          new RawJson(`{"definition":${text}${pasted}}`),
        ),
      );
    });
  const isReceiver = /"kind"\s*:\s*"receiver"/.test(text);

  if (saved !== null) return html`<${RelayMade} place=${place} saved=${saved} />`;
  return html`<${PageHead} title="New relay" back="Relays" backTo=${pagePath(place, "relays")} />
    <div class="stack narrow-page">
      <div class="choices" role="group" aria-label="Start from">
        ${starts.map(
          (example) =>
            html`<button key=${example.title} type="button" aria-pressed=${chosen.title === example.title} onClick=${() => {
              setChosen(example);
              change(writeExact(example.definition, 2));
            }}>${example.title}</button>`,
        )}
      </div>
      <p class="quiet">${chosen.hint}</p>
      ${
        chosen.steps !== undefined &&
        html`<ol class="steps quiet">${chosen.steps.map((step) => html`<li key=${step}><span><${Sentence} text=${step} /></span></li>`)}</ol>`
      }
      <${DefinitionEditor} place=${place} text=${text} onText=${change} refused=${checked?.problems ?? NO_PROBLEMS} onSave=${create} />
      ${
        isReceiver &&
        html`<label class="field"><span>The sender’s secret or public key, if it shows you one</span>
          <textarea class="mono" rows="1" spellcheck=${false} autocomplete="off" value=${secret} placeholder="Leave empty and a new secret is made for you"
            onInput=${(event: InputEvent) => setSecret((event.target as HTMLTextAreaElement).value)}></textarea></label>`
      }
      ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
      <${WarningList} warnings=${checked?.warnings ?? []} />
      ${checked !== null && checked.problems.length === 0 && html`<${Notice} kind="good">The definition is valid.<//>`}
      <div class="form-actions">
        <button type="button" class="primary" disabled=${busy !== null} onClick=${create}>
          ${busy === "create" ? "Creating…" : "Create relay"}</button>
        <button type="button" disabled=${busy !== null} onClick=${validate}>
          ${busy === "validate" ? "Checking…" : "Validate"}</button>
      </div>
    </div>`;
}
