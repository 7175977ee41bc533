/** A payload that an attacker made to break the page that shows it. */

export const HOSTILE = {
  html: '<img src=x onerror="globalThis.broken=1"><script>globalThis.broken=2</script>',
  attribute: '" onmouseover="globalThis.broken=3" x="',
  bidi: "user\u202egpj.exe",
  "zero\u200bwidth": "\u0007bell",
  __html: "<b>markup</b>",
  emoji: "👩‍👩‍👧",
};

/**
 * Runs in the page and answers instead of the service, without the network: markup in names and values, 5 MB, 10,000 keys, deep nesting and
 * right-to-left text.
 */
export function answerHostile({ id, event, texts }: { id: string; event: string; texts: Record<string, string> }): void {
  // Only the list opens the event, and creating the response takes longer than loading a page.
  if (!location.pathname.endsWith("/events")) return;
  const keys = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`<b onclick=alert(1)>key ${at}`, `\u202e${at} مرحبا بالعالم`]));
  const long = `<svg onload="globalThis.broken=4">${"y".repeat(5_000_000)}`;
  const deep = `${"[".repeat(3_000)}9007199254740993${"]".repeat(3_000)}`;
  const mapped = { event_type: `${texts.html}\u202e`, order: long, ...keys };
  const payload = `{"event":${JSON.stringify({ ...texts, ...keys, long }).slice(0, -1)},"deep":${deep}},"mapped":${JSON.stringify(mapped)}}`;
  const body = `{"event":${event.replace('"payload":null', () => `"payload":${payload}`)}}`;
  const real = fetch;
  globalThis.fetch = ((path: string, init: RequestInit) =>
    path.endsWith(`/events/${id}`) ? Promise.resolve(new Response(body)) : real(path, init)) as typeof fetch;
}
