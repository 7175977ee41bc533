/** List of the cases of a relay, each with its kept result and what the relay does with it now. */
import { useEffect, useState } from "preact/hooks";
import type { CaseReport } from "../../src/insight/simulate/case-run.ts";
import type { CaseView } from "../../src/rules/relay/relay-case.ts";
import { call as ask, sentenceOf } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { useLoad } from "../base/use-load.ts";
import { Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { notifyDone } from "../component/toast.ts";
import { useSend } from "../component/use-send.ts";
import { formatCaseResult } from "./case-words.ts";

export function RelayCases({
  place,
  name,
  version,
  onUse,
}: {
  place: Place;
  name: string;
  /** The version of the relay. The cases run again after each save. */
  version: number;
  /** Opens the request of a case in the editor of the test. */
  onUse: (body: string) => void;
}): View {
  const path = apiPath(place, "relays", name, "cases");
  const { data, error } = useLoad<{ cases: CaseView[] }>(path);
  const [report, setReport] = useState<CaseReport | null>(null);
  const [failure, setFailure] = useState<string | null>(null);
  const cases = data?.cases;
  useEffect(() => {
    if (cases === undefined || cases.length === 0) return;
    let isCurrent = true;
    // The report is about the earlier cases.
    setReport(null);
    ask<{ report: CaseReport | null }>("POST", `${path}/run`, {}).then(
      (answer) => {
        if (!isCurrent) return;
        setReport(answer.report);
        setFailure(null);
      },
      (thrown) => isCurrent && setFailure(sentenceOf(thrown)),
    );
    return () => {
      isCurrent = false;
    };
  }, [cases, version, path]);
  if (cases === undefined)
    return error === null ? null : html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`;
  if (cases.length === 0) return null;
  const isChanged = report?.items.some(({ change }) => change !== null) === true;
  return html`<section class="block" aria-label="Cases">
    <div class="block-head"><h2>Cases</h2><span class="quiet">example requests that each save runs without effect</span></div>
    ${failure !== null && html`<${Notice} kind="bad"><${Sentence} text=${failure} /><//>`}
    ${isChanged && html`<${Notice} kind="warn"><${Sentence} text=${report.message} /><//>`}
    <ul class="test-cases card-list">${cases.map(
      (one) =>
        html`<${CaseRow} key=${one.name} path=${path} kept=${one} item=${report?.items.find((item) => item.name === one.name)} onUse=${onUse} />`,
    )}</ul></section>`;
}

function CaseRow({
  path,
  kept,
  item,
  onUse,
}: {
  path: string;
  kept: CaseView;
  /** The result now; undefined before the cases ran. */
  item: CaseReport["items"][number] | undefined;
  onUse: (body: string) => void;
}): View {
  const { isSending, send } = useSend();
  const own = `${path}/${encodeURIComponent(kept.name)}`;
  const write = async (
    method: "PUT" | "DELETE",
    done: string,
    undo?: () => Promise<unknown>,
  ): Promise<void> => {
    const sent = await send({ method, path: own, changes: [path], tellsRefusal: true });
    if (sent !== null) notifyDone(done, undo);
  };
  const restore = async (): Promise<unknown> =>
    await send({
      method: "PUT",
      path: own,
      body: { body: kept.body, contentType: kept.contentType },
      changes: [path],
    });
  return html`<li class="test-case">
    <span class="clip"><b>${kept.name}</b> <span class="quiet">kept <${Ago} at=${kept.updatedAt} /></span></span>
    <span class="test-case-result"><${SafeText} text=${formatCaseResult(kept.expected)} limit=${200} />
      ${item?.change != null && html`, <span class="test-case-change"><${SafeText} text=${item.change} limit=${300} /></span>`}
      ${item?.outcome === "as_before" && html`, <span class="quiet">as before</span>`}</span>
    <span class="test-case-actions">
      ${item?.change != null && html`<button data-needs="edit_definitions" type="button" disabled=${isSending} onClick=${() => void write("PUT", `Kept the new result of ${kept.name}.`)}>Keep the new result</button>`}
      <button type="button" onClick=${() => onUse(kept.body)}>Edit as a test</button>
      <button data-needs="edit_definitions" type="button" disabled=${isSending} onClick=${() => void write("DELETE", `Removed the case ${kept.name}.`, restore)}>Remove</button></span>
  </li>`;
}
