/**
 * Write to the API: its progress, the service's rejection, and the data that it makes outdated. Success is reported
 * only after the service answered. A second send during the first is dropped.
 */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../../src/base/refusal.ts";
import { ApiError, call, type Method, sentenceOf } from "../base/api.ts";
import { invalidate } from "../base/loaded.ts";
import { notifyDone, notifyFailed } from "./toast.ts";

interface Wanted<Answer> {
  method: Method;
  path: string;
  body?: unknown;
  /** Prefixes of the addresses that the write makes outdated. */
  changes?: readonly string[];
  /** Text that reports the success, and a function that reverts the write if possible. */
  done?: string | ((answer: Answer) => string | null);
  undo?: () => Promise<unknown>;
  /** Shows the rejection as a toast, for writes without a form. */
  tellsRefusal?: boolean;
}

interface Sending {
  isSending: boolean;
  /** Message of the last rejection. */
  error: string | null;
  /** Code of the last rejection, such as `version_conflict`. */
  code: string | null;
  /** Problems by field. */
  problems: readonly Problem[];
  /** Sends the write. Returns its response, or null if it was rejected or another one is running. */
  send<Answer>(wanted: Wanted<Answer>): Promise<{ answer: Answer } | null>;
  /** Clears the last rejection. */
  clear(): void;
}

interface Refused {
  error: string | null;
  code: string | null;
  problems: readonly Problem[];
}

const NOTHING: Refused = { error: null, code: null, problems: [] };

/** Reports whether a failed write may have been carried out: the service did not answer, or a proxy did. */
export function mayBeDone(code: string | null): boolean {
  return code === "unreachable" || code === "unknown";
}

export function useSend(): Sending {
  const [isSending, setSending] = useState(false);
  const [refused, setRefused] = useState(NOTHING);
  const busy = useRef(false);
  const held = useRef<Element | null>(null);
  // A button that is disabled during a send loses the focus. Otherwise keyboard users would have to start at the top of the page.
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
      if (words !== undefined && words !== null) notifyDone(words, undo);
      return { answer };
    } catch (thrown) {
      const isRefusal = thrown instanceof ApiError;
      const sentence = sentenceOf(thrown);
      if (tellsRefusal) notifyFailed(sentence);
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
