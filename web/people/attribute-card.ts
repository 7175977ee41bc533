/**
 * Attributes of a person and their editor. It sends only the names that changed, so that it does not overwrite other
 * names that changed meanwhile.
 */
import { useState } from "preact/hooks";
import type { PersonView } from "../../src/shop/people/person.ts";
import { isObject, type Json, parseExact, writeExact } from "../base/exact-json.ts";
import { html, type View } from "../base/html.ts";
import { apiPath, type Place } from "../base/place.ts";
import { Dialog } from "../component/dialog.ts";
import { JsonView } from "../component/json-view.ts";
import { Sentence } from "../component/sentence.ts";
import { useSend } from "../component/use-send.ts";

interface Props {
  place: Place;
  person: PersonView;
}

export function AttributeCard({ place, person }: Props): View {
  const [isChanging, setChanging] = useState(false);
  const attributes = person.attributes as Json;
  return html`<div class="card"><h2>Attributes</h2>
    ${
      Object.keys(person.attributes).length === 0
        ? html`<p class="quiet">None. Your app can store any JSON here.</p>`
        : html`<${JsonView} value=${attributes} label="Attributes" />`
    }
    <button data-needs="act_on_people" type="button" class="small" aria-label="Edit attributes…" onClick=${() => setChanging(true)}>Edit…</button>
    ${isChanging && html`<${ChangeDialog} place=${place} person=${person} onClose=${() => setChanging(false)} />`}</div>`;
}

function ChangeDialog({ place, person, onClose }: Props & { onClose: () => void }): View {
  // Attributes when the dialog opened.
  const [read] = useState(person.attributes as { [name: string]: Json });
  const [text, setText] = useState(() => writeExact(read, 2));
  const [broken, setBroken] = useState<string | null>(null);
  const { send, isSending, error } = useSend();
  const save = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const typed = readTyped(text);
    setBroken("wrong" in typed ? typed.wrong : null);
    if ("wrong" in typed) return;
    const attributes = differences(read, typed.attributes);
    if (Object.keys(attributes).length === 0) return onClose();
    const path = apiPath(place, "persons", person.id);
    const changes = [apiPath(place, "persons")];
    const done = `The attributes of ${person.email} are changed.`;
    if ((await send({ method: "PATCH", path, body: { attributes }, changes, done })) !== null) onClose();
  };
  const problem = broken ?? error;
  return html`<${Dialog} title="Attributes of ${person.email}" onClose=${onClose} wide><form class="stack" onSubmit=${save}>
    <label class="field"><span>Attributes</span>
      <textarea class="mono" name="attributes" rows="10" spellcheck="false" autofocus aria-invalid=${problem !== null} value=${text}
        onInput=${(event: InputEvent) => setText((event.target as HTMLTextAreaElement).value)} />
      <small>A JSON object. Names that you remove or set to null are deleted.</small>
      ${problem !== null && html`<small class="field-problem" role="alert"><${Sentence} text=${problem} /></small>`}</label>
    <div class="dialog-actions"><button type="button" onClick=${onClose}>Cancel</button>
      <button class="primary" disabled=${isSending}>${isSending ? "Saving…" : "Save"}</button></div>
  </form><//>`;
}

function readTyped(text: string): { attributes: { [name: string]: Json } } | { wrong: string } {
  try {
    const value = parseExact(text.trim() === "" ? "{}" : text);
    if (isObject(value)) return { attributes: value };
    return {
      wrong: 'This is not a JSON object. Write names and values, for example {"company":"Lamps Ltd"}.',
    };
  } catch (error) {
    return { wrong: `This is not JSON: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** Returns the changed values, with null for removed names. */
function differences(read: { [name: string]: Json }, typed: { [name: string]: Json }): Record<string, Json> {
  const changed = new Map<string, Json>();
  for (const [name, value] of Object.entries(typed)) {
    const before = Object.hasOwn(read, name) ? read[name] : undefined;
    if (before === undefined || writeExact(before) !== writeExact(value)) changed.set(name, value);
  }
  for (const name of Object.keys(read)) if (!Object.hasOwn(typed, name)) changed.set(name, null);
  return Object.fromEntries(changed);
}
