/** Palette that finds pages, relays, collections, people, ids and commands by a few letters. Arrows move, Enter opens. */
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Session } from "../account/session.ts";
import { useCell } from "../base/cell.ts";
import { html, type View } from "../base/html.ts";
import type { Place } from "../base/place.ts";
import { navigate } from "../base/route.ts";
import { Dialog } from "../component/dialog.ts";
import { Icon } from "../component/icon.ts";
import { paletteShown } from "../component/keyboard.ts";
import { escapeTricky } from "../component/safe-text.ts";
import { Sentence } from "../component/sentence.ts";
import { type Finding, SEARCH_EVENTS, useFindings } from "./search-result.ts";

/** Largest length of a title. A line has no space for more or for a button that expands it. */
const MAX_CHARS = 120;

export function Palette({ session, place }: { session: Session; place: Place }): View {
  return useCell(paletteShown) ? html`<${Open} session=${session} place=${place} />` : null;
}

function Open({ session, place }: { session: Session; place: Place }): View {
  const id = useId();
  const [typed, setTyped] = useState("");
  // Keeps the selection while more results arrive; null: the first result.
  const [chosenKey, setChosenKey] = useState<string | null>(null);
  // True if the user pressed Enter before the results arrived.
  const [isEntered, setEntered] = useState(false);
  const list = useRef<HTMLUListElement>(null);
  const { findings, isLooking, error } = useFindings(session, place, typed.trim());
  const at = findings.findIndex(({ key }) => key === chosenKey);
  const chosen = at < 0 ? Math.min(0, findings.length - 1) : at;
  useLayoutEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen]);
  const type = (text: string): void => {
    setTyped(text);
    setChosenKey(null);
    setEntered(false);
  };
  const close = (): void => paletteShown.set(false);
  const take = (finding: Finding | undefined): void => {
    if (finding === undefined) return;
    close();
    // Runs after the dialog closed and returned the focus, so that the next page can take it.
    setTimeout(() => {
      if (finding.act !== undefined) return finding.act();
      if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
      navigate(finding.to);
    });
  };
  const press = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && findings.length > 0) {
      event.preventDefault();
      setChosenKey(findings[(chosen + step + findings.length) % findings.length]?.key ?? null);
      setEntered(false);
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      if (isLooking && at < 0 && isOnlySearched(findings)) setEntered(true);
      else take(findings[chosen]);
    }
  };
  useLayoutEffect(() => {
    if (isEntered && !isLooking) take(findings[chosen]);
  }, [isEntered, isLooking]);
  return html`<${Dialog} title="Find anything" onClose=${close}>
    <input class="palette-input" autofocus role="combobox" aria-label="Find anything" aria-expanded="true" aria-autocomplete="list" autocomplete="off" spellcheck=${false}
      aria-controls="${id}-list" aria-activedescendant=${chosen >= 0 ? `${id}-${chosen}` : null}
      placeholder="Page, relay, ID, email address or command" value=${typed}
      onInput=${(event: InputEvent) => type((event.target as HTMLInputElement).value)} onKeyDown=${press} />
    <ul class="palette-list" id="${id}-list" role="listbox" aria-label="Found" ref=${list}>${findings.map(
      (
        finding,
        index,
      ) => html`<li key=${finding.key} id="${id}-${index}" role="option" aria-selected=${index === chosen}
        onMouseMove=${() => setChosenKey(finding.key)} onClick=${() => take(finding)}>
        <${Icon} name=${finding.icon} /><span class="clip"><bdi class="safe">${escapeTricky(finding.title.slice(0, MAX_CHARS))}</bdi></span>
        <span class="quiet">${finding.hint}</span></li>`,
    )}</ul>
    <p class="quiet" role="status">${
      isLooking
        ? "Searching…"
        : error !== null
          ? html`Relay could not search people, events and records. <${Sentence} text=${error} />`
          : findings.length === 0
            ? "No results."
            : html`<span class="off-screen">${findings.length} found</span>`
    }</p>
  <//>`;
}

/** Reports whether the only result so far is a search in the events. */
function isOnlySearched([first]: readonly Finding[]): boolean {
  return first === undefined || first.key === SEARCH_EVENTS;
}
