/**
 * Streams the changes of an environment as server-sent events. A stream lasts until its reader leaves, its session or key ends, or the service
 * stops. Each message lists the kinds of things that changed. An empty list every few seconds shows that the service is up.
 */
import { Type } from "typebox";
import { CHANGE_KINDS, type ChangeKind } from "../../platform/audit/live-changes.ts";
import { watchAdmission } from "../http/admission.ts";
import { DATA_HEADERS } from "../http/answer.ts";
import type { HttpDeps } from "../http/deps.ts";
import { environmentRoute } from "../http/route.ts";

/** Interval of messages, well below the time after which servers and proxies close a silent connection. */
const BEAT_MS = 15_000;
/** A reader that reads nothing for this many beats is treated as gone. */
const MAX_MISSED = 4;
/** Messages that can wait for a slow reader. Later changes are part of the next message. */
const MAX_WAITING = 4;

const HEADERS = {
  ...DATA_HEADERS,
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  // Tells a proxy not to buffer the stream, because it would hold all messages.
  "x-accel-buffering": "no",
};

class ChangeStream {
  readonly #deps: HttpDeps;
  readonly #environmentId: number;
  readonly #admission: ReturnType<typeof watchAdmission>;
  readonly #pending = new Set<ChangeKind>();
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #leave: () => void = () => undefined;
  #cancelBeat: () => void = () => undefined;
  #isSending = false;
  #missed = 0;

  constructor(deps: HttpDeps, request: Request, environmentId: number) {
    this.#deps = deps;
    this.#environmentId = environmentId;
    this.#admission = watchAdmission(deps, request, environmentId);
  }

  /** Opens the stream. Throws the refusal if too many are open. */
  open(): ReadableStream<Uint8Array> {
    this.#leave = this.#deps.liveChanges.follow(this.#environmentId, {
      caller: this.#admission.caller,
      notify: (kinds) => {
        for (const kind of kinds) this.#pending.add(kind);
        void this.#send();
      },
      end: () => this.#end(),
    });
    const source = {
      start: (controller: ReadableStreamDefaultController<Uint8Array>): void => {
        this.#controller = controller;
        controller.enqueue(write([]));
        this.#beat();
      },
      cancel: () => this.#end(),
    };
    return new ReadableStream(source, { highWaterMark: MAX_WAITING });
  }

  #beat(): void {
    this.#cancelBeat = this.#deps.clock.after(BEAT_MS, () => {
      this.#missed = this.#isFull ? this.#missed + 1 : 0;
      if (this.#missed > MAX_MISSED) return this.#end();
      this.#beat();
      void this.#send();
    });
  }

  async #send(): Promise<void> {
    if (this.#isSending) return;
    this.#isSending = true;
    const goesOn = await this.#admission.holds().catch(() => false);
    this.#isSending = false;
    if (!goesOn) return this.#end();
    if (this.#isFull) return;
    this.#controller?.enqueue(write([...this.#pending]));
    this.#pending.clear();
  }

  get #isFull(): boolean {
    return (this.#controller?.desiredSize ?? 0) <= 0;
  }

  #end(): void {
    const controller = this.#controller;
    this.#controller = null;
    this.#cancelBeat();
    this.#leave();
    try {
      controller?.close();
    } catch {
      // The reader has already left.
    }
  }
}

const encoder = new TextEncoder();

function write(changed: readonly ChangeKind[]): Uint8Array {
  return encoder.encode(`data: ${JSON.stringify({ changed })}\n\n`);
}

export const streamRoutes = [
  environmentRoute({
    method: "GET",
    path: "/stream",
    needs: "read",
    summary:
      "Sends the kinds of items that change as server-sent events, at most twice a second. An empty list is a heartbeat.",
    answer: Type.String({
      contentMediaType: "text/event-stream",
      description: `events whose data is {"changed":[…]}, of ${CHANGE_KINDS.join(", ")}`,
    }),
    handle: ({ deps, request, environmentId }) =>
      new Response(new ChangeStream(deps, request, environmentId).open(), { headers: HEADERS }),
  }),
];
