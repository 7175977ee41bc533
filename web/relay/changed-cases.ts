/** Question before a save that changes the result of a case, and the run of the cases that finds it. */
import type { CaseReport } from "../../src/insight/simulate/case-run.ts";
import { call, RawJson } from "../base/api.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { Dialog } from "../component/dialog.ts";
import { SafeText } from "../component/safe-text.ts";
import { formatCaseResult } from "./case-words.ts";

type Changed = CaseReport["items"];

/** Returns the cases whose result is different with this definition. A definition that the service rejects has none, because its save says why. */
export async function findChangedCases(place: Place, name: string, definition: string): Promise<Changed> {
  try {
    const path = apiPath(place, "relays", name, "cases");
    const body = new RawJson(`{"definition":${definition}}`);
    const { report } = await call<{ report: CaseReport | null }>("POST", `${path}/run`, body);
    return report?.items.filter(({ change }) => change !== null) ?? [];
  } catch {
    return [];
  }
}

/** List of the cases whose result is different with a definition, with both results. */
export function ChangedCaseList({ changed }: { changed: Changed }): View {
  return html`<p>With this definition, ${changed.length > 1 ? "these cases have" : "this case has"} a different result:</p>
    <ul class="changed-cases">${changed.map(
      ({ name, before, change }) =>
        html`<li key=${name}><b>${name}</b> was ${before === null ? "" : formatCaseResult(before)}, and <${SafeText} text=${change ?? ""} limit=${300} />.</li>`,
    )}</ul>`;
}

export function ChangedCases({
  changed,
  onSave,
  onClose,
}: {
  changed: Changed;
  onSave: () => void;
  onClose: () => void;
}): View {
  return html`<${Dialog} title=${changed.length > 1 ? `${changed.length} cases have a different result` : "A case has a different result"} onClose=${onClose}>
    <${ChangedCaseList} changed=${changed} />
    <div class="dialog-actions"><button type="button" autofocus onClick=${onClose}>Continue to edit</button>
      <button type="button" class="primary" onClick=${onSave}>Save anyway</button></div>
  <//>`;
}
