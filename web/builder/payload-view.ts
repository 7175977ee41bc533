/** Payload in view: the body of a request, the last record change or a tick, as a tree whose values the definition can use. */
import { useMemo } from "preact/hooks";
import type { Simulation } from "../../src/insight/simulate/step.ts";
import type { Json } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { Notice } from "../component/notice.ts";
import { SafeText } from "../component/safe-text.ts";
import { Ago } from "../component/time.ts";
import { type JsonNode, nodeAt, readTree } from "../editor/json-tree.ts";
import type { Known } from "../editor/schema.ts";
import type { InsertTarget } from "./insert-target.ts";
import { PayloadMenu } from "./payload-menu.ts";
import type { PayloadRow } from "./payload-row.ts";
import { PayloadTree } from "./payload-tree.ts";
import { listMapped, listUses, triggerOf } from "./payload-use.ts";
import { RequestChoice, type Seen } from "./request-choice.ts";
import { readSeenBody } from "./seen-request.ts";
import type { ChangedRecord } from "./use-changed-record.ts";

const RAW_CHARS = 4_000;

interface Props {
  place: Place;
  text: string;
  onText: (next: string) => void;
  /** The saved relay; null: it is new. */
  relay: string | null;
  seen: Seen;
  /** The newest explanation, whose example is in view if there is no request. */
  explanation: Simulation | null;
  known: Omit<Known, "root"> | null;
  /** The last change of a record; null if there is none. */
  changed: ChangedRecord | null;
  /** The next tick of a schedule. */
  nextTick: string | undefined;
  target: InsertTarget | null;
}

export function PayloadView(props: Props): View {
  const { text, onText, target, nextTick } = props;
  const root = useMemo(() => readTree(text), [text]);
  const mapped = useMemo(() => listMapped(root), [root]);
  const menuFor = ({ steps, value }: PayloadRow, close: (isLeft?: boolean) => void): View =>
    html`<${PayloadMenu} uses=${listUses(text, steps, value)} text=${text} onText=${onText} target=${target} onClose=${close} />`;
  const tree = (value: Json, label: string): View =>
    html`<${PayloadTree} value=${value} label=${label} mapped=${mapped} menuFor=${menuFor} />`;
  const kind = triggerOf(root);
  if (kind === "schedule")
    return html`<${Title} words="Tick" />${tree({ tick: { periodStart: nextTick ?? new Date().toISOString() } }, "Tick")}`;
  if (kind === "data_change") return html`<${ChangeInView} ...${props} root=${root} tree=${tree} />`;
  return html`<${RequestInView} ...${props} tree=${tree} />`;
}

function Title({ words, children }: { words: string; children?: View }): View {
  return html`<div class="workbench-title"><h2>${words}</h2>${children}</div>`;
}

type TreeOf = (value: Json, label: string) => View;

function RequestInView({ place, relay, seen, explanation, tree }: Props & { tree: TreeOf }): View {
  const { request } = seen;
  const example = explanation?.example ?? null;
  const shown = request ?? example;
  const value = useMemo(
    () => (shown === null ? undefined : readSeenBody(shown)),
    [shown?.body, shown?.contentType],
  );
  return html`<${Title} words="Request in view"><${RequestChoice} place=${place} relay=${relay} seen=${seen} /><//>
    ${
      shown === null
        ? html`<p class="none">Relay makes an example once the definition is valid. Paste a request to see its values now.</p>`
        : value === undefined
          ? html`<${Notice} kind="warn">The body is neither JSON nor a form, so Relay would reject the request with <code>invalid_json</code>.<//>
            <pre class="preview"><${SafeText} text=${shown.body} limit=${RAW_CHARS} /></pre>`
          : html`<p class="quiet workbench-hint">Choose a value to use it in the relay.</p>${tree(value, "Body of the request")}`
    }`;
}

function ChangeInView({ root, known, changed, tree }: Props & { root: JsonNode | null; tree: TreeOf }): View {
  const collection = nodeAt(root, ["trigger", "collection"])?.value ?? "";
  if (changed !== null) {
    const { record, change } = changed;
    return html`<${Title} words="Record in view" /><p class="quiet workbench-hint">The last record of ${collection} that was ${change}, <${Ago} at=${record.updatedAt} />. Choose a value to use it.</p>
      ${tree({ record: { id: record.id, data: record.data as Json } }, "Record")}`;
  }
  const fields = known?.catalog.collections.find(({ name }) => name === collection)?.fields;
  if (fields === undefined)
    return html`<${Title} words="Record in view" /><p class="none">Choose a collection that exists. Its fields then appear here.</p>`;
  const data = Object.fromEntries(fields.map((field): [string, Json] => [field, null]));
  return html`<${Title} words="Record in view" /><p class="quiet workbench-hint">No record of ${collection} changed yet. A template can read these fields.</p>
    ${tree({ record: { id: null, data } }, "Record")}`;
}
