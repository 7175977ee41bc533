/** Expected outcome of the draft for the request in view. The service explains both shortly after the last key, with no effect. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { CaseReport } from "../../src/insight/simulate/case-run.ts";
import type { Simulation } from "../../src/insight/simulate/step.ts";
import { ApiError, call, RawJson, sentenceOf } from "../base/api.ts";
import { apiPath, type Place } from "../base/place.ts";
import { findChangedCases } from "../relay/changed-cases.ts";
import { formatProblem } from "./form/form-problem.ts";

const PAUSE_MS = 300;

/** Input of the explanation next to the definition. */
export type ExplainInput = Readonly<Record<string, unknown>>;

export interface Outcome {
  /** The newest explanation; null before the first one. */
  explanation: Simulation | null;
  /** Cases whose result is different with the draft. */
  changed: CaseReport["items"];
  /** Reason why the service explained nothing; null: the explanation is the answer to the last question. */
  problem: string | null;
  /** True while the draft or the request is newer than the answer. */
  isOld: boolean;
}

interface Found extends Omit<Outcome, "isOld"> {
  of: string | null;
}

const NOTHING: Found = { explanation: null, changed: [], problem: null, of: null };

/**
 * `relay` is the saved relay whose cases run with the draft; null: there is none. `problem` says why the text is no definition. Nothing is explained
 * while the text is being checked (`isChecking`), because the service refuses to explain a definition with a problem, and the browser's console would
 * show that as a failed request. The explanation runs again if `of` changes, because it depends on what the environment has.
 */
export function useOutcome({
  place,
  text,
  input,
  relay,
  problem,
  isChecking,
  of: environment,
}: {
  place: Place;
  text: string;
  input: ExplainInput;
  relay: string | null;
  problem: string | null;
  isChecking: boolean;
  of: unknown;
}): Outcome {
  const [found, setFound] = useState(NOTHING);
  const given = useMemo(() => JSON.stringify(input), [input]);
  const question = `${given}\n${text}`;
  const changedAt = useMemo(() => performance.now(), [question]);
  useEffect(() => {
    if (problem !== null || isChecking) return;
    const stop = new AbortController();
    const ask = async (): Promise<void> => {
      const rest = given === "{}" ? "" : `,${given.slice(1, -1)}`;
      try {
        const body = new RawJson(`{"definition":${text}${rest}}`);
        const path = apiPath(place, "relays", "explain");
        const { explanation } = await call<{ explanation: Simulation }>("POST", path, body, stop.signal);
        if (stop.signal.aborted) return;
        setFound((before) => ({ explanation, changed: before.changed, problem: null, of: question }));
        if (relay === null) return;
        const changed = await findChangedCases(place, relay, text);
        if (!stop.signal.aborted) setFound((before) => ({ ...before, changed }));
      } catch (thrown) {
        if (stop.signal.aborted) return;
        const [first] = thrown instanceof ApiError ? thrown.problems : [];
        setFound((before) => ({
          ...before,
          problem: first === undefined ? sentenceOf(thrown) : formatProblem(first, true),
          of: question,
        }));
      }
    };
    // The check of the text already took a part of the pause.
    const timer = setTimeout(() => void ask(), Math.max(0, changedAt + PAUSE_MS - performance.now()));
    // Drops the answer to an earlier question.
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [place.app, place.environment, question, relay, problem, isChecking, environment]);
  const { of, ...rest } = found;
  return { ...rest, problem: problem ?? rest.problem, isOld: of !== question };
}
