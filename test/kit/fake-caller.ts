/**
 * Replaces the outbound caller of call_url in tests. It records the requests and answers as the test says, at once or when the test releases them.
 */
import type { CallOutcome, CallRequest, OutboundCaller } from "../../src/platform/outbound/caller.ts";

export const OK: CallOutcome = { kind: "answered", ok: true, status: 200, body: "fine" };
export const BROKEN: CallOutcome = { kind: "answered", ok: false, status: 500, body: "broken" };

export type Reply = CallOutcome | "hang" | "throw";

export class FakeCaller implements OutboundCaller {
  readonly requests: CallRequest[] = [];
  /** Chooses the response to a request by its URL. */
  reply: (url: string) => Reply;
  #hanging: { url: string; resolve: (outcome: CallOutcome) => void }[] = [];

  constructor(reply: Reply | ((url: string) => Reply) = OK) {
    this.reply = typeof reply === "function" ? reply : () => reply;
  }

  call(request: CallRequest): Promise<CallOutcome> {
    this.requests.push(request);
    const reply = this.reply(request.url);
    if (reply === "throw") return Promise.reject(new Error("the door fell off"));
    if (reply !== "hang") return Promise.resolve(reply);
    return new Promise((resolve) => this.#hanging.push({ url: request.url, resolve }));
  }

  /** Counts the calls without a response yet, to this URL or to any. */
  hanging(url?: string): number {
    return this.#hanging.filter((one) => url === undefined || one.url === url).length;
  }

  /** Answers the oldest `count` pending calls. */
  letGo(count = Number.POSITIVE_INFINITY, outcome: CallOutcome = OK): void {
    for (const one of this.#hanging.splice(0, Math.min(count, this.#hanging.length))) one.resolve(outcome);
  }

  /** Ids of the notices, in the order of their requests. */
  get ids(): string[] {
    return this.requests.map((request) => (JSON.parse(request.body) as { id: string }).id);
  }
}
