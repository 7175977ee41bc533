/** A yes before something goes for good: from whoever sits at the terminal; where nobody does, the line says it with --confirm. */
import { CommandFailure, type Input, UsageError } from "../command.ts";
import type { World } from "../io.ts";

/** Fails with `not_confirmed`. `undone`: what did not happen then, `Nothing was deleted`; `line`: what says it without being asked. */
export async function requireYes(
  world: World,
  { question, undone, line }: { question: string; undone: string; line: string },
): Promise<void> {
  const yes = world.interactive ? await world.confirm(question) : null;
  if (yes === true) return;
  throw new CommandFailure(
    "not_confirmed",
    yes === false
      ? `${undone}.`
      : `${undone}, because nobody is there to be asked: say ${line} to do it without being asked.`,
  );
}

/** Throws UsageError where something else than `meant` stands behind --confirm; `what`: of which kind it is, `relay`. */
export function requireSame(input: Input, what: string, meant: string): void {
  const confirm = input.text("confirm");
  if (confirm !== null && confirm !== meant)
    throw new UsageError(
      `--confirm is ${JSON.stringify(confirm)}, and the ${what} is ${meant}: write it once more, --confirm ${meant}.`,
    );
}
