/** Page with only the form of a definition and its text, for tests of the form. The text's field takes the part of the JSON editor. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Simulation } from "../../src/insight/simulate/step.ts";
import { call, RawJson } from "../../web/base/api.ts";
import { html, type View } from "../../web/base/html.ts";
import { apiPath, readPlace } from "../../web/base/place.ts";
import { DefinitionForm } from "../../web/builder/form/definition-form.ts";
import type { InsertTarget } from "../../web/builder/insert-target.ts";
import { Toasts } from "../../web/component/toast.ts";
import { useChecked } from "../../web/editor/use-checked.ts";
import { useKnown } from "../../web/editor/use-known.ts";

declare global {
  interface Window {
    /** First text, the body of the request in view, and the name of the saved relay. */
    formStart: { text: string; body: string; saved: string | null };
    formTarget: InsertTarget | null;
    formText: string;
    formShown: { from: number; to: number } | null;
  }
}

const place = readPlace(location.pathname)?.place ?? { app: "", environment: "local" as const };

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function FormPage(): View {
  const [text, setText] = useState(window.formStart.text);
  const [outcome, setOutcome] = useState<Simulation | null>(null);
  const known = useKnown(place);
  const isValid = isJson(text);
  const checked = useChecked(apiPath(place, "relays", "validate"), text, isValid, known);
  window.formText = text;
  useEffect(() => {
    if (!isValid || checked.state !== "checked" || checked.problems.length > 0) return;
    const body = `{"definition":${text},"body":${JSON.stringify(window.formStart.body)},"contentType":"application/json"}`;
    call<{ explanation: Simulation }>("POST", apiPath(place, "relays", "explain"), new RawJson(body)).then(
      ({ explanation }) => setOutcome(explanation),
      () => setOutcome(null),
    );
  }, [text, checked]);
  const placed = [
    ...checked.problems.map((one) => ({ ...one, line: null, severity: "error" })),
    ...checked.warnings.map((one) => ({ ...one, line: null, severity: "warning" })),
  ];
  return html`<main><h1>Form</h1>
    <textarea aria-label="Definition as JSON" rows="4" value=${text} onInput=${({ target }: InputEvent) => setText((target as HTMLTextAreaElement).value)}></textarea>
    <${DefinitionForm} place=${place} text=${text} onText=${setText} saved=${window.formStart.saved} known=${known} placed=${placed} outcome=${outcome} checked=${checked}
      onTarget=${(target: InsertTarget | null) => {
        window.formTarget = target;
      }}
      onShowJson=${(range: { from: number; to: number }) => {
        window.formShown = range;
      }} /></main><${Toasts} />`;
}

render(html`<${FormPage} />`, document.body);
