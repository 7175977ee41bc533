/** What the service finds in a definition while it is written: asked a moment after the last key, and told as of the last text that was JSON. */
import { useEffect, useState } from "preact/hooks";
import type { Problem, Warning } from "../../src/ground/refusal.ts";
import type { CheckedDefinition } from "../../src/http/relay.ts";
import { call, RawJson } from "../ground/api.ts";

const PAUSE_MS = 350;

interface Checked {
  problems: readonly Problem[];
  warnings: readonly Warning[];
  /** `unknown`: the service was asked and could not tell. */
  state: "checking" | "checked" | "unknown";
}

const NOTHING: Checked = { problems: [], warnings: [], state: "checking" };

export function useChecked(path: string, text: string, isJson: boolean): Checked {
  const [checked, setChecked] = useState(NOTHING);
  useEffect(() => {
    if (!isJson) return;
    const stop = new AbortController();
    setChecked((before) => ({ ...before, state: "checking" }));
    const timer = setTimeout(async () => {
      try {
        const body = new RawJson(`{"definition":${text}}`);
        const found = await call<CheckedDefinition>("POST", path, body, stop.signal);
        if (!stop.signal.aborted) setChecked({ ...found, state: "checked" });
      } catch {
        // The save will say what it finds; until then nothing is known.
        if (!stop.signal.aborted) setChecked({ ...NOTHING, state: "unknown" });
      }
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [path, text, isJson]);
  return checked;
}
