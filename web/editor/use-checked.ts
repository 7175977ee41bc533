/** What the service finds in a definition while it is written: asked a moment after the last key, and told as of the last text that was JSON. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Problem, Warning } from "../../src/base/refusal.ts";
import type { CheckedDefinition } from "../../src/interfaces/api/relay.ts";
import { call, RawJson } from "../base/api.ts";

const PAUSE_MS = 350;

interface Checked {
  problems: readonly Problem[];
  warnings: readonly Warning[];
  /** `unknown`: the service was asked and could not tell. */
  state: "checking" | "checked" | "unknown";
}

/** `of`: the text that it was found in; null: in none yet. */
interface Found extends Checked {
  of: string | null;
}

const NOTHING: Checked = { problems: [], warnings: [], state: "checking" };

export function useChecked(path: string, text: string, isJson: boolean): Checked {
  const [found, setFound] = useState<Found>({ ...NOTHING, of: null });
  useEffect(() => {
    if (!isJson) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const body = new RawJson(`{"definition":${text}}`);
        const checked = await call<CheckedDefinition>("POST", path, body, stop.signal);
        if (!stop.signal.aborted) setFound({ ...checked, state: "checked", of: text });
      } catch {
        // The save will say what it finds; until then nothing is known.
        if (!stop.signal.aborted) setFound({ ...NOTHING, state: "unknown", of: text });
      }
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [path, text, isJson]);
  // What was found in another text is told until this one is known, but never as what this one is.
  return useMemo(
    () => (found.of === text || !isJson ? found : { ...found, state: "checking" }),
    [found, text, isJson],
  );
}
