/** Versions of a relay's definition, newest first, each with its changes. An earlier version can be restored. */
import { useEffect, useState } from "preact/hooks";
import type { CheckedDefinition } from "../../src/interfaces/api/explain.ts";
import type { RelayVersion } from "../../src/rules/relay/relay-version.ts";
import { formatNamed } from "../audit/words.ts";
import type { Page, Relay, SavedRelay } from "../base/answer.ts";
import { call, RawJson, sentenceOf } from "../base/api.ts";
import { formatCommit } from "../base/commit-words.ts";
import { writeExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { put } from "../base/loaded.ts";
import { apiPath, type Place } from "../base/place.ts";
import { navigate, setQuery, useRoute } from "../base/route.ts";
import { useList } from "../base/use-list.ts";
import { afterMaking } from "../component/create-item.ts";
import { Dialog } from "../component/dialog.ts";
import { Notice, Skeleton, StaleNotice } from "../component/notice.ts";
import { OlderButton } from "../component/older-button.ts";
import { escapeTricky } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { Ago } from "../component/time.ts";
import { useSend } from "../component/use-send.ts";
import { WarningList } from "../component/warning-list.ts";
import { ChangedCaseList, findChangedCases } from "./changed-cases.ts";
import { TextDiff } from "./text-diff-view.ts";

interface Props {
  place: Place;
  relay: Relay;
  onSaved: (saved: SavedRelay) => void;
}

export function RelayHistory({ place, relay, onSaved }: Props): View {
  const path = apiPath(place, "relays", relay.name, "versions");
  const list = useList<RelayVersion>(path);
  const { query } = useRoute();
  const asked = query.get("version");
  const [chosen, setChosen] = useState<RelayVersion | null>(null);
  const newest = list.items?.[0]?.version;
  useEffect(() => {
    // Loads the list again after a save made a new version, even while the user reads, because the user looks for that version.
    if (newest === undefined || newest >= relay.version) return;
    call<Page<RelayVersion>>("GET", path).then(
      (page) => put(path, page),
      () => undefined,
    );
  }, [relay.version, newest]);
  const { items, error } = list;
  if (items === undefined)
    return error === null
      ? html`<${Skeleton} rows=${4} />`
      : html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`;
  const open = asked ?? String(relay.version);
  // A link from a problem opens the dialog of the version to restore.
  const linked = items.find(({ version }) => String(version) === query.get("restore")) ?? null;
  const restoring = chosen ?? linked;
  const close = (): void => {
    setChosen(null);
    if (linked !== null) setQuery({ restore: "", relay: "", back: "" });
  };
  const done = (saved: SavedRelay): void => {
    onSaved(saved);
    // A user who came from a problem continues with the events that it left.
    const next = linked === null ? null : afterMaking(place, query);
    if (next !== null) navigate(next);
  };
  return html`<section class="block" aria-label="History">
    ${error !== null && html`<${StaleNotice} error=${error} />`}
    ${items.length === 0 && html`<p class="none">The audit log has no version of this relay. Versions appear with the next save.</p>`}
    <ol class="versions">${items.map(
      (
        one,
      ) => html`<${Version} key=${one.id} version=${one} isNow=${one.version === relay.version} isOpen=${open === String(one.version)}
        onRestore=${() => setChosen(one)} />`,
    )}</ol>
    <${OlderButton} list=${list} none="No older versions." />
    ${
      restoring !== null &&
      html`<${Restore} place=${place} relay=${relay} version=${restoring} onClose=${close}
      onSaved=${done} />`
    }
  </section>`;
}

function Version({
  version: one,
  isNow,
  isOpen,
  onRestore,
}: {
  version: RelayVersion;
  isNow: boolean;
  isOpen: boolean;
  onRestore: () => void;
}): View {
  const {
    version,
    at,
    actor,
    actorName,
    origin,
    promotedFrom,
    commit,
    restores,
    definition,
    before,
    changed,
  } = one;
  const from =
    promotedFrom !== undefined ? `, promoted from ${promotedFrom}` : origin === "file" ? ", from a file" : "";
  const ofCommit =
    commit === undefined ? "" : html` of commit <code title=${commit}>${formatCommit(commit)}</code>`;
  return html`<li class="relay-version" aria-label="Version ${version}">
    <div class="version-head">
      <h2><button type="button" class="version-name" aria-expanded=${isOpen}
        onClick=${() => setQuery({ version: isOpen ? "none" : String(version) })}>Version ${version}</button></h2>
      ${isNow && html`<span class="version-now">in force</span>`}
      <span class="quiet">${formatNamed(actor, actorName)}${from}${ofCommit} · <${Ago} at=${at} /></span>
      ${!isNow && html`<button data-needs="edit_definitions" type="button" class="small" aria-label="Restore version ${version}…" onClick=${onRestore}>Restore…</button>`}
    </div>
    <p class="version-changed">${renderChanged(restores, before === null, changed)}</p>
    ${
      isOpen &&
      (before === null
        ? html`<pre class="diff version-text" tabindex="0" aria-label="Definition of version ${version}">${escapeTricky(writeExact(definition, 2))}</pre>`
        : html`<${TextDiff} left=${writeExact(before, 2)} right=${writeExact(definition, 2)} label="Content of version ${version} changed: minus was before, plus is since" />`)
    }
  </li>`;
}

const SHOWN_FIELDS = 4;

function renderChanged(restores: number | undefined, isFirst: boolean, changed: readonly string[]): View {
  if (isFirst) return "Relay created.";
  const fields = changed.slice(0, SHOWN_FIELDS);
  const more = changed.length - fields.length;
  return html`${restores !== undefined && `Content of version ${restores} restored. `}${
    changed.length === 0
      ? "No difference from the version before."
      : html`Changed ${fields.map((field, at) => html`${at > 0 && ", "}<code>${escapeTricky(field)}</code>`)}${more > 0 && ` and ${more} more`}.`
  }`;
}

/** Dialog that shows what a restore would change and checks the old definition before it saves. */
function Restore({
  place,
  relay,
  version: { version, definition },
  onClose,
  onSaved,
}: Props & { version: RelayVersion; onClose: () => void }): View {
  const text = writeExact(definition, 2);
  const now = writeExact(relay.definition, 2);
  const [checked, setChecked] = useState<CheckedDefinition | { error: string } | null>(null);
  const [cases, setCases] = useState<Awaited<ReturnType<typeof findChangedCases>>>([]);
  const { isSending, error, problems, send } = useSend();
  useEffect(() => {
    void findChangedCases(place, relay.name, text).then(setCases);
    const path = apiPath(place, "relays", "validate");
    call<CheckedDefinition>("POST", path, new RawJson(`{"definition":${text}}`)).then(setChecked, (thrown) =>
      setChecked({ error: sentenceOf(thrown) }),
    );
  }, []);
  const restore = async (): Promise<void> => {
    const path = apiPath(place, "relays", relay.name);
    const sent = await send<SavedRelay>({
      method: "POST",
      path: `${path}/restore`,
      body: { restores: version, version: relay.version },
      done: (saved) =>
        `Restored version ${version} of ${relay.name} as version ${saved.relay.version}${saved.file === undefined ? "" : `, and wrote ${saved.file}`}.`,
    });
    if (sent === null) return;
    onClose();
    onSaved(sent.answer);
  };
  const found = checked !== null && "problems" in checked ? [...checked.problems, ...problems] : problems;
  return html`<${Dialog} title="Restore version ${version}" onClose=${onClose} wide>
    <p>Relay saves it as version ${relay.version + 1}; the history stays complete.</p>
    ${
      text === now
        ? html`<${Notice} kind="info">The current version is equal to version ${relay.version}: nothing would change.<//>`
        : html`<${TextDiff} left=${now} right=${text} label="Changes by the restore: minus is now, plus is after" />`
    }
    ${checked !== null && "error" in checked && html`<${Notice} kind="bad"><${Sentence} text=${checked.error} /><//>`}
    ${checked !== null && "warnings" in checked && html`<${WarningList} warnings=${checked.warnings} />`}
    ${cases.length > 0 && html`<${Notice} kind="warn"><${ChangedCaseList} changed=${cases} /><//>`}
    ${found.map(({ message }, at) => html`<${Notice} key=${at} kind="bad"><${Sentence} text=${message} /><//>`)}
    ${error !== null && problems.length === 0 && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button type="button" class="primary" disabled=${isSending || checked === null || found.length > 0 || text === now} onClick=${restore}>
        ${checked === null ? "Checking…" : isSending ? "Restoring…" : `Restore version ${version}`}</button></div>
  <//>`;
}
