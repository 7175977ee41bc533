/**
 * Page that makes a relay: the user chooses a template, names it and edits it. The new secrets are shown once, before
 * anything else. The text is stored as a draft, and replacing it by a template can be undone.
 */
import { useMemo, useState } from "preact/hooks";
import type { Problem } from "../../src/base/refusal.ts";
import type { SenderView } from "../../src/rules/senders/sender-view.ts";
import type { SavedRelay } from "../base/answer.ts";
import { ApiError, call, RawJson, sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { invalidate } from "../base/loaded.ts";
import type { PageProps } from "../base/page.ts";
import { apiPath, pagePath } from "../base/place.ts";
import { setQuery } from "../base/route.ts";
import { useLoad } from "../base/use-load.ts";
import { keepSeen, recallSeen, type SeenRequest } from "../builder/seen-request.ts";
import { Found } from "../builder/start/found.ts";
import { readStartWay, type StartWay } from "../builder/start/request-start.ts";
import { Workbench } from "../builder/workbench.ts";
import { AskOwnerLine } from "../component/ask-owner.ts";
import { Notice } from "../component/notice.ts";
import { PageHead } from "../component/page-head.ts";
import { Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { notifyDone } from "../component/toast.ts";
import { useDraft } from "../editor/draft.ts";
import { findJsonProblem } from "../editor/json-problem.ts";
import { KitCreated, type MadeKit } from "./kit-choice.ts";
import { RelayCreated } from "./relay-created.ts";
import { SellChoice, useUnsold } from "./sell-choice.ts";
import { senderPath } from "./sender-choice.ts";
import { MadeFromSender, SecretHint } from "./sender-hint.ts";
import { TemplateChoice, useTemplates } from "./template-choice.ts";

const NONE: readonly Problem[] = [];
/** Removes every starting point from the address. */
const NOWHERE = { from: "", sender: "", sell: "", start: "" } as const;

export function NewRelayPage({ place, query }: PageProps): View {
  const templates = useTemplates();
  const draftKey = `new:${place.app}:${place.environment}`;
  const { draft, isFound, keep } = useDraft(draftKey);
  const [secret, setSecret] = useState("");
  const [problems, setProblems] = useState(NONE);
  const [error, setError] = useState<string | null>(null);
  const [isSaving, setSaving] = useState(false);
  const [wantsSale, setWantsSale] = useState(true);
  const [saved, setSaved] = useState<SavedRelay | null>(null);
  const [madeKit, setMadeKit] = useState<MadeKit | null>(null);
  const from = query.get("from") ?? "";
  const template = templates.find(({ name }) => name === from);
  const sender = query.get("sender") ?? "";
  const known = useLoad<{ sender: SenderView }>(sender === "" ? null : senderPath(sender)).data?.sender;
  // Local development generates every secret.
  const isIssued = known?.secret.from === "sender" && place.environment !== "local";
  const text = draft?.text ?? "";
  const unsold = useUnsold(place, text);
  const sells = wantsSale && unsold.length > 0;
  const step = query.get("step");
  const request = useMemo(() => (step === "found" ? recallSeen(draftKey) : null), [step, draftKey]);

  const write = (next: string): void => {
    keep(next === "" ? null : { text: next, version: 0 });
    setProblems(NONE);
    setError(null);
  };
  /** Starts with a text. A request in view belongs to the start that it came with. */
  const take = (next: string, isFromRequest = false): void => {
    const before = draft?.text;
    if (!isFromRequest) keepSeen(draftKey, null);
    write(next);
    setQuery({ sell: "", start: "", step: "write" });
    scrollTo(0, 0);
    if (before !== undefined && before !== next)
      notifyDone("The template replaced your text.", async () => write(before));
  };
  const create = async (): Promise<void> => {
    if (isSaving) return;
    const broken = findJsonProblem(text);
    if (broken !== null) return setProblems([{ field: "", message: broken.message }]);
    setSaving(true);
    setError(null);
    const pasted = secret === "" ? "" : `,"secret":${JSON.stringify(secret)}`;
    try {
      const path = apiPath(place, "relays");
      const made = await call<SavedRelay>(
        "POST",
        path,
        new RawJson(`{"definition":${text}${pasted}${sells ? ',"sell":true' : ""}}`),
      );
      keep(null);
      for (const changed of ["relays", "products", "plans"]) invalidate(apiPath(place, changed));
      setSaved(made);
    } catch (thrown) {
      const found = thrown instanceof ApiError ? thrown.problems : NONE;
      setProblems(found);
      if (found.length === 0) setError(sentenceOf(thrown));
    }
    setSaving(false);
  };

  if (madeKit !== null) return html`<${KitCreated} place=${place} made=${madeKit} />`;
  if (saved !== null && sender !== "")
    return html`<${MadeFromSender} place=${place} saved=${saved} name=${sender} />`;
  if (saved !== null)
    return html`<${RelayCreated} place=${place} saved=${saved} steps=${template?.steps ?? []} />`;
  const head = html`<${PageHead} title="New relay" back="Relays" backTo=${pagePath(place, "relays")} />
    <${AskOwnerLine} needs="edit_definitions" to="create a relay here" />`;
  const kit = query.get("sell") ?? "";
  const start = readStartWay(query.get("start") ?? "");
  if (request !== null)
    return html`<${PageHead} title="What Relay found" back="New relay" backTo=${pagePath(place, "relays", "new")} />
      <${Found} place=${place} request=${request} secret=${secret} onSecret=${setSecret} onBuild=${(next: string) => take(next, true)} onBack=${() => setQuery({ step: "template" })} />`;
  if (draft === null || kit !== "" || start !== null || step === "template")
    return html`${head}
      ${draft !== null && html`<${Notice} kind="info">You have an unsaved draft <${Ago} at=${draft.at} />. <button type="button" class="link" onClick=${() => setQuery({ ...NOWHERE, step: "write" })}>Continue the draft</button><//>`}
      <${TemplateChoice} place=${place} templates=${templates} chosen=${template} sender=${sender} kit=${kit} start=${start} query=${query} onTake=${(next: string) => take(next)}
        onChoose=${(name: string) => setQuery({ ...NOWHERE, from: name })} onChooseSender=${(name: string) => setQuery({ ...NOWHERE, sender: name })}
        onChooseKit=${(name: string) => setQuery({ ...NOWHERE, sell: name })} onChooseStart=${(way: StartWay) => setQuery({ ...NOWHERE, start: way })} onMadeKit=${setMadeKit}
        onRequest=${(chosen: SeenRequest) => {
          keepSeen(draftKey, chosen);
          setQuery({ ...NOWHERE, capture: "", step: "found" });
        }} />`;
  return html`${head}
    <div class="stack">
      ${isFound && html`<${Notice} kind="info">This is your draft from <${Ago} at=${draft.at} />, saved in this browser. <button type="button" class="link" onClick=${() => throwAway()}>Discard draft</button><//>`}
      <p><button type="button" onClick=${() => setQuery({ step: "template" })}>Other starting points…</button></p>
      ${
        template !== undefined &&
        template.steps.length > 0 &&
        html`<details class="card"><summary>What you must change in this template</summary>
          <ol class="steps quiet">${template.steps.map((step) => html`<li key=${step}><span><${Sentence} text=${step} /></span></li>`)}</ol></details>`
      }
      <${Workbench} place=${place} text=${text} onText=${write} refused=${problems} onSave=${create} relay=${null} isChanged=${false} secret=${secret} sells=${sells} seenKey=${draftKey}
        actions=${html`<button data-needs="edit_definitions" type="button" class="primary" onClick=${create}>${isSaving ? "Creating…" : "Create relay"}</button>`}>
      ${
        /"scheme"\s*:\s*"processor"/.test(text) &&
        html`<p class="quiet">Relay verifies its requests with the processor secret of this environment, which is in <a href=${pagePath(place, "settings")}>Settings</a>.</p>`
      }
      ${
        /"kind"\s*:\s*"receiver"/.test(text) &&
        !/"scheme"\s*:\s*"(?:processor|receiver)"/.test(text) &&
        html`<label class="field"><span>Secret or public key of the sender, if it shows one</span>
          <textarea class="mono" rows="1" spellcheck=${false} autocomplete="off" value=${secret} placeholder=${isIssued ? "Leave empty to paste it on the next page" : "Leave empty to create a new secret"}
            onInput=${(event: InputEvent) => setSecret((event.target as HTMLTextAreaElement).value)}></textarea>
          ${sender !== "" && html`<${SecretHint} name=${sender} />`}</label>`
      }
      <${SellChoice} names=${unsold} isOn=${wantsSale} onChange=${setWantsSale} />
      ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
      <//>
    </div>`;

  function throwAway(): void {
    const before = text;
    keep(null);
    setQuery({ step: "" });
    notifyDone("Draft discarded.", async () => write(before));
  }
}
