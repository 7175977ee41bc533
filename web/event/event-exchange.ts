/** Exchange with a receiver URL: its response, and folded the sent request and the response headers. */
import type { Result } from "../base/answer.ts";
import { html, type View } from "../base/html.ts";
import { SafeText } from "../component/safe-text.ts";

export function EventExchange({ result: { request, answer } }: { result: Result }): View {
  return html`${
    answer !== undefined &&
    html`<div class="answer"><span>The receiver responded <b>${answer.status}</b>${answer.body === "" && " with no body"}</span>
      ${answer.body !== "" && html`<pre><${SafeText} text=${answer.body} /></pre>`}</div>`
  }${
    (request !== undefined || answer?.headers !== undefined) &&
    html`<details class="change exchange"><summary>Request and headers</summary>
      ${
        request !== undefined &&
        html`<h4>Sent</h4><${Lines} label="Request" first="${request.method} ${request.url}" headers=${request.headers} />
        <p class="quiet">The body was the signed notice of this event. The signature is not stored.</p>`
      }
      ${
        answer?.headers !== undefined &&
        html`<h4>Answered</h4><${Lines} label="Answer" first=${String(answer.status)} headers=${answer.headers} />
        <p class="quiet">Headers that may hold credentials, and long bodies, are not stored.</p>`
      }
      ${request !== undefined && answer === undefined && html`<p class="quiet">No response.</p>`}
    </details>`
  }`;
}

function Lines({
  label,
  first,
  headers,
}: {
  label: string;
  first: string;
  headers: Readonly<Record<string, string>>;
}): View {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return html`<pre aria-label=${label}>${[first, ...lines].map((line, at) => html`<div key=${at}><${SafeText} text=${line} limit=${2_100} /></div>`)}</pre>`;
}
