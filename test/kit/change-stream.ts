/** Reads the stream of changes as a client program does. */

/** Returns a whole response as text. For an event stream it returns the first message and then disconnects. */
export async function readWhole(response: Response): Promise<string> {
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return await response.text();
  const reader = response.body?.getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return new TextDecoder().decode(first?.value);
}

interface FollowedChanges extends AsyncDisposable {
  status: number;
  /** The kinds that each message reported as changed, so far. A heartbeat is an empty list. */
  messages: string[][];
  /** Resolves once the stream has ended. */
  ended: Promise<void>;
  /** Resolves once a message reports this kind as changed. */
  until(kind: string): Promise<void>;
}

export async function followChanges(url: string, headers: Record<string, string>): Promise<FollowedChanges> {
  const leave = new AbortController();
  const response = await fetch(url, { headers, signal: leave.signal });
  const messages: string[][] = [];
  const waiting = new Set<() => void>();
  const read = async (): Promise<void> => {
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      const parts = text.split("\n\n");
      text = parts.pop() ?? "";
      for (const part of parts) messages.push(JSON.parse(part.replace(/^data: /, "")).changed);
      for (const look of waiting) look();
    }
  };
  const ended = response.status === 200 ? read().catch(() => undefined) : response.text().then(() => undefined);
  const until = (kind: string): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!messages.some((changed) => changed.includes(kind))) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
  return {
    status: response.status,
    messages,
    ended,
    until,
    async [Symbol.asyncDispose]() {
      leave.abort();
      await ended;
    },
  };
}
