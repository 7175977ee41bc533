/** Start of a relay from a pasted payload or curl command. */
import { useState } from "preact/hooks";
import { html, type View } from "../../base/html.ts";
import { readSeenBody, type SeenRequest, seenOfPaste } from "../seen-request.ts";

/** Greatest body that a receiver takes. */
const MAX_BODY_BYTES = 256 * 1024;

export function PasteStart({ onRequest }: { onRequest: (request: SeenRequest) => void }): View {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const take = (event: Event): void => {
    event.preventDefault();
    const request = seenOfPaste(text);
    if (readSeenBody(request) === undefined)
      setProblem("The body is neither JSON nor a form. Paste the whole request, or only its body.");
    else if (new Blob([request.body]).size > MAX_BODY_BYTES)
      setProblem(
        "The body is larger than 256 KiB, so Relay would reject this request. Paste a smaller body.",
      );
    else onRequest(request);
  };
  return html`<form class="stack" onSubmit=${take}>
    <label class="field"><span>A curl command, headers and body, or only the body</span>
      <textarea class="mono" rows="12" spellcheck=${false} autocomplete="off" value=${text} aria-invalid=${problem !== null}
        placeholder=${'{ "id": "evt_1", "type": "order.paid" }'}
        onInput=${(event: InputEvent) => {
          setText((event.target as HTMLTextAreaElement).value);
          setProblem(null);
        }}></textarea>
      <small>With the headers, Relay finds the sender and its signature. The request stays in this tab.</small></label>
    <p class="builder-problem" role="alert">${problem}</p>
    <div class="form-actions"><button class="primary" disabled=${text.trim() === ""}>Continue</button></div>
  </form>`;
}
