/** Filters the log of the bench's servers, because their ordinary lines would hide its table. It prints those only when a server ends by itself. */

/** A line of the service's log that needs no action. */
const ORDINARY = /^\S+Z (?:INFO|WARN) /;
const KEPT_LINES = 40;

/** Prints errors and lines that are not from the log at once. Resolves when the child's output ends. */
export async function tellTrouble(child: Bun.Subprocess<"ignore", "pipe", "pipe">): Promise<void> {
  const kept: string[] = [];
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of child.stderr) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!ORDINARY.test(line)) console.error(line);
      else if (kept.push(line) > KEPT_LINES) kept.shift();
    }
  }
  if (rest !== "") console.error(rest);
  await child.exited;
  if (child.exitCode === 0 || child.signalCode === "SIGTERM") return;
  const how = child.signalCode ?? `exit code ${child.exitCode}`;
  const last = kept.length === 0 ? ["nothing"] : kept;
  console.error([`A server of the bench ended by itself (${how}). What it logged last:`, ...last].join("\n"));
}
