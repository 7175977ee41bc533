/** Search of the documentation for the palette. */
import { useEffect, useState } from "preact/hooks";
import { call, writeQuery } from "../base/api.ts";
import { DOCS } from "../component/docs-link.ts";

export interface FoundSection {
  title: string;
  section: string;
  path: string;
}

const MIN_ASKED = 3;
const MAX_ASKED = 200;
const MAX_SHOWN = 4;
const ASK_AFTER_MS = 200;

/** Opens the page in a new tab, so that the user stays in the dashboard. */
export function openDocs(path: string): void {
  window.open(path, "_blank", "noreferrer");
}

export function useFoundSections(typed: string): readonly FoundSection[] {
  const [answer, setAnswer] = useState<{ typed: string; sections: readonly FoundSection[] }>({
    typed: "",
    sections: [],
  });
  const isAsked = typed.length >= MIN_ASKED;
  useEffect(() => {
    if (!isAsked) return;
    const own = new AbortController();
    const ask = (): void => {
      call<{ sections: FoundSection[] }>(
        "GET",
        `${DOCS.all}/search${writeQuery({ q: typed.slice(0, MAX_ASKED) })}`,
        undefined,
        own.signal,
      )
        .then(({ sections }) => setAnswer({ typed, sections }))
        .catch(() => undefined);
    };
    const timer = setTimeout(ask, ASK_AFTER_MS);
    return () => {
      clearTimeout(timer);
      own.abort();
    };
  }, [typed]);
  const sections = isAsked && answer.typed === typed ? answer.sections : [];
  return sections.slice(0, MAX_SHOWN);
}
