/** Dialog for a save that met a newer version. It shows both versions and saves nothing until the user decides. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Relay } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { Dialog } from "../component/dialog.ts";
import { Ago } from "../component/time.ts";
import type { SideBySide } from "../editor/side-by-side.ts";
import { TextDiff } from "./text-diff-view.ts";

const NARROW = "(max-width: 760px)";

export function RelayConflict({
  mine,
  theirs,
  theirText,
  onMine,
  onTheirs,
  onEdit,
  onClose,
}: {
  mine: string;
  theirs: Relay;
  theirText: string;
  /** `text` is the user's version with the edits made here. */
  onMine: (text: string) => void;
  onTheirs: () => void;
  onEdit: (text: string) => void;
  onClose: () => void;
}): View {
  const host = useRef<HTMLDivElement>(null);
  const sides = useRef<SideBySide | null>(null);
  const [isReady, setReady] = useState(false);
  useEffect(() => {
    let isUnmounted = false;
    const start = async (): Promise<void> => {
      const { mountSideBySide } = await import("../editor/side-by-side.ts");
      if (isUnmounted || host.current === null) return;
      sides.current = mountSideBySide({
        shadow: host.current.attachShadow({ mode: "open" }),
        theirs: { text: theirText, label: `Version ${theirs.version}, stored` },
        mine: { text: mine, label: "Your unsaved version" },
        isNarrow: matchMedia(NARROW).matches,
      });
      setReady(true);
    };
    // If the side-by-side view cannot load, a line diff replaces it.
    start().catch(() => undefined);
    return () => {
      isUnmounted = true;
      sides.current?.destroy();
    };
  }, []);
  const text = (): string => sides.current?.text() ?? mine;
  return html`<${Dialog} title="The relay changed while you edited it" onClose=${onClose} wide>
    <p>Version ${theirs.version} was ${formatOrigin(theirs.origin)} <${Ago} at=${theirs.origin.at} />. Your changes are not saved.</p>
    <div class="conflict-heads" aria-hidden="true" hidden=${!isReady}><span>Version ${theirs.version}, stored</span><span>Your unsaved version: edit it, or use parts of the stored version</span></div>
    <div ref=${host} class="conflict-sides" hidden=${!isReady}></div>
    ${!isReady && html`<${TextDiff} left=${theirText} right=${mine} label="Differences: minus is the stored version, plus is yours" />`}
    <div class="dialog-actions">
      <button type="button" onClick=${() => onEdit(text())}>Continue editing</button>
      <button type="button" onClick=${onTheirs}>Take version ${theirs.version}, discard my changes</button>
      <button type="button" class="primary" onClick=${() => onMine(text())}>Overwrite with my version</button>
    </div>
  <//>`;
}

function formatOrigin({ kind, promotedFrom }: Relay["origin"]): string {
  if (promotedFrom !== undefined) return `promoted from ${promotedFrom}`;
  return kind === "file" ? "synced from a file" : "saved in the dashboard";
}
