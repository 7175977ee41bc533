/** Start of a relay from a request that the user sends now to a capture URL. The page waits for it and lists what arrives. */
import { useState } from "preact/hooks";
import { formatTimeLeft } from "../../../src/base/shared/time-span.ts";
import type { CaptureView } from "../../../src/engine/receiver/request-capture.ts";
import { call, sentenceOf } from "../../base/api.ts";
import { formatBytes, formatCount } from "../../base/count-words.ts";
import { html, type View } from "../../base/html.ts";
import { apiPath, type Place } from "../../base/place.ts";
import { setQuery } from "../../base/route.ts";
import { useNow } from "../../base/time-words.ts";
import { useLoad } from "../../base/use-load.ts";
import { CopyButton } from "../../component/copy-button.ts";
import { LoadingState, Notice } from "../../component/notice.ts";
import { SafeText } from "../../component/safe-text.ts";
import { Sentence } from "../../component/sentence.ts";
import { Ago } from "../../component/time.ts";
import { useSend } from "../../component/use-send.ts";
import type { SeenRequest } from "../seen-request.ts";

const REFRESH_MS = 2_000;
const BODY_CHARS = 160;

export function CaptureStart({
  place,
  id,
  onRequest,
}: {
  place: Place;
  /** "": no capture is open. */
  id: string;
  onRequest: (request: SeenRequest) => void;
}): View {
  const { send, isSending, error } = useSend();
  const open = async (): Promise<void> => {
    const sent = await send<{ capture: CaptureView }>({ method: "POST", path: apiPath(place, "captures") });
    if (sent !== null) setQuery({ capture: sent.answer.capture.id });
  };
  if (id !== "") return html`<${OpenCapture} key=${id} place=${place} id=${id} onRequest=${onRequest} />`;
  return html`<div class="stack">
    <p>Relay opens a URL for one hour. It shows up to 20 requests, verified or not, and then deletes them. It runs nothing and answers 200.</p>
    ${error !== null && html`<${Notice} kind="bad"><${Sentence} text=${error} /><//>`}
    <div class="form-actions"><button type="button" class="primary" disabled=${isSending} onClick=${open}>${isSending ? "Opening…" : "Open a capture URL"}</button></div>
  </div>`;
}

function OpenCapture({
  place,
  id,
  onRequest,
}: {
  place: Place;
  id: string;
  onRequest: (request: SeenRequest) => void;
}): View {
  const path = apiPath(place, "captures", id);
  const { data, error, isGone, reload } = useLoad<{ capture: CaptureView }>(path, REFRESH_MS);
  const now = useNow(1_000);
  const [isClosing, setClosing] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const close = async (): Promise<void> => {
    setClosing(true);
    try {
      await call("DELETE", path);
      setQuery({ capture: "" });
    } catch (thrown) {
      setProblem(sentenceOf(thrown));
    }
    setClosing(false);
  };
  const left = data === undefined ? 0 : Date.parse(data.capture.expiresAt) - now;
  if (isGone || (data !== undefined && left <= 0))
    return html`<div class="stack"><${Notice} kind="info">This capture is over, and Relay deleted its requests.<//>
      <div class="form-actions"><button type="button" class="primary" onClick=${() => setQuery({ capture: "" })}>Start again</button></div></div>`;
  if (data === undefined) return html`<${LoadingState} error=${error} rows=${3} onRetry=${reload} />`;
  const { url, requests, isFull } = data.capture;
  return html`<div class="stack">
    <p>Register this URL at the sender, or send a request to it. It is open for another ${formatTimeLeft(left)}.</p>
    <div class="copy-row"><code>${url}</code><${CopyButton} text=${url} label="Copy capture URL" /></div>
    ${problem !== null && html`<${Notice} kind="bad"><${Sentence} text=${problem} /><//>`}
    ${isFull && html`<${Notice} kind="warn">The capture is full. Choose a request, or close the URL and start again.<//>`}
    <div role="status" aria-live="polite">${
      requests.length === 0
        ? html`<p class="none">Waiting for a request…</p>`
        : html`<p class="quiet">${requests.length === 1 ? "1 request arrived." : `${requests.length} requests arrived.`} Choose one.</p>`
    }</div>
    ${
      requests.length > 0 &&
      html`<ul class="start-list">${requests.map(
        (
          one,
        ) => html`<li key=${one.id}><button type="button" class="bare start-line" onClick=${() => onRequest(seenOf(url, one))}>
          <span class="clip"><b><${SafeText} text=${one.method} limit=${20} /></b> <span class="quiet"><${SafeText} text=${one.contentType ?? "no content type"} limit=${80} />, ${one.bytes === 0 ? "no body" : one.bytes < 1024 ? formatCount(one.bytes, "byte") : formatBytes(one.bytes)}</span></span>
          <span class="quiet"><${Ago} at=${one.at} /></span>
          <span class="clip start-more"><${SafeText} text=${one.body.slice(0, BODY_CHARS)} limit=${BODY_CHARS} /></span></button></li>`,
      )}</ul>`
    }
    <div class="form-actions"><button type="button" disabled=${isClosing} onClick=${close}>${isClosing ? "Closing…" : "Close the URL"}</button></div>
  </div>`;
}

function seenOf(
  url: string,
  { body, contentType, headers, search, at }: CaptureView["requests"][number],
): SeenRequest {
  return { body, contentType, headers, search, url, receivedAt: at, from: "the captured request" };
}
