/** A payload that a stranger made to break the page that shows it. */

export const HOSTILE = {
  html: '<img src=x onerror="globalThis.broken=1"><script>globalThis.broken=2</script>',
  attribute: '" onmouseover="globalThis.broken=3" x="',
  bidi: "user\u202egpj.exe",
  "zero\u200bwidth": "\u0007bell",
  __html: "<b>markup</b>",
  emoji: "👩‍👩‍👧",
};

/**
 * Run in the page, which then answers for the service without the wire: markup in names and values, 5 MB, 10,000 keys, deep nesting, text that
 * runs the other way.
 */
export function answerHostile({ id, event, texts }: { id: string; event: string; texts: Record<string, string> }): void {
  // It is opened from the list alone, and takes a page longer to make than to load.
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
