/**
 * A write: whether it is on its way, what the service refused, and what is out of date once it is done. Nothing is told as done before the
 * service has answered. What is sent twice while the first is on its way is sent once.
 */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../../src/base/refusal.ts";
import { ApiError, call, type Method, sentenceOf } from "../base/api.ts";
import { invalidate } from "../base/loaded.ts";
import { tellDone, tellFailed } from "./toast.ts";

interface Wanted<Answer> {
  method: Method;
  path: string;
  body?: unknown;
  /** What begins with these addresses is out of date once it is done. */
  changes?: readonly string[];
  /** What is told once it is done, and how it is taken back where that can be. */
  done?: string | ((answer: Answer) => string | null);
  undo?: () => Promise<unknown>;
  /** What was refused is told in passing, where no form shows it. */
  tellsRefusal?: boolean;
}

interface Sending {
  isSending: boolean;
  /** The service's sentence, where it refused the last. */
  error: string | null;
  /** The refusal's code, such as `version_conflict`. */
  code: string | null;
  /** What is wrong at which field. */
  problems: readonly Problem[];
  /** The answer; null: it was refused, or another is on its way. */
  send<Answer>(wanted: Wanted<Answer>): Promise<{ answer: Answer } | null>;
  /** Forgets what was refused. */
  clear(): void;
}

interface Refused {
  error: string | null;
  code: string | null;
  problems: readonly Problem[];
}

const NOTHING: Refused = { error: null, code: null, problems: [] };

/** Whether what was refused with this code may be done all the same: no answer of the service came, or a proxy gave one in its place. */
export function mayBeDone(code: string | null): boolean {
  return code === "unreachable" || code === "unknown";
}

export function useSend(): Sending {
  const [isSending, setSending] = useState(false);
  const [refused, setRefused] = useState(NOTHING);
  const busy = useRef(false);
  const held = useRef<Element | null>(null);
  // A button that is disabled while it sends loses the focus, and whoever has no pointer would begin at the top again.
  useLayoutEffect(() => {
    if (!isSending && document.activeElement === document.body && held.current instanceof HTMLElement)
      held.current.focus({ preventScroll: true });
  }, [isSending]);
  const send = async <Answer>(wanted: Wanted<Answer>): Promise<{ answer: Answer } | null> => {
    if (busy.current) return null;
    busy.current = true;
    held.current = document.activeElement;
    setSending(true);
    setRefused(NOTHING);
    const { method, path, body, changes = [], done, undo, tellsRefusal = false } = wanted;
    try {
      const answer = await call<Answer>(method, path, body ?? (method === "DELETE" ? undefined : {}));
      for (const prefix of changes) invalidate(prefix);
      const words = typeof done === "function" ? done(answer) : done;
      if (words !== undefined && words !== null) tellDone(words, undo);
      return { answer };
    } catch (thrown) {
      const isRefusal = thrown instanceof ApiError;
      const sentence = sentenceOf(thrown);
      if (tellsRefusal) tellFailed(sentence);
      setRefused({
        error: sentence,
        code: isRefusal ? thrown.code : null,
        problems: isRefusal ? thrown.problems : [],
      });
      return null;
    } finally {
      busy.current = false;
      setSending(false);
    }
  };
  return { isSending, ...refused, send, clear: () => setRefused(NOTHING) };
}
