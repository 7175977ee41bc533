/** Checks a definition with the service shortly after the last key. It keeps the result of the last text that was JSON. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Problem, Warning } from "../../src/base/refusal.ts";
import type { CheckedDefinition } from "../../src/interfaces/api/explain.ts";
import { call, RawJson } from "../base/api.ts";

const PAUSE_MS = 350;

export interface Checked extends Pick<CheckedDefinition, "nextTicks" | "recentChanges"> {
  /** Title of the known sender whose recipe the receiver uses; null: none, undefined: not checked yet. */
  sender?: string | null;
  problems: readonly Problem[];
  warnings: readonly Warning[];
  /** `unknown`: the service could not answer. */
  state: "checking" | "checked" | "unknown";
}

/** `of` is the checked text; null before the first check. */
interface Found extends Checked {
  of: string | null;
}

const NOTHING: Checked = { problems: [], warnings: [], state: "checking" };

/** The check runs again if `of` changes, because the result depends on what the environment has. */
export function useChecked(path: string, text: string, isJson: boolean, of: unknown = null): Checked {
  const [found, setFound] = useState<Found>({ ...NOTHING, of: null });
  useEffect(() => {
    if (!isJson) return;
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const body = new RawJson(`{"definition":${text}}`);
        const checked = await call<CheckedDefinition>("POST", path, body, stop.signal);
        if (!stop.signal.aborted)
          setFound({ ...checked, sender: checked.sender ?? null, state: "checked", of: text });
      } catch {
        // The save reports its own problems. Until then nothing is known.
        if (!stop.signal.aborted) setFound({ ...NOTHING, sender: null, state: "unknown", of: text });
      }
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [path, text, isJson, of]);
  // Results of an older text stay visible until the new ones arrive, but with the state "checking".
  return useMemo(
    () => (found.of === text || !isJson ? found : { ...found, state: "checking" }),
    [found, text, isJson],
  );
}
