/** Asks for a yes before a permanent change. --confirm gives the yes if there is no terminal. */
import { CommandFailure, type Input, UsageError } from "../command.ts";
import type { Io } from "../io.ts";

/**
 * Fails with `not_confirmed` without a yes. `undone` says what did not happen, such as `Nothing was deleted`. `line` is the command that
 * needs no question.
 */
export async function requireYes(
  io: Io,
  { question, undone, line }: { question: string; undone: string; line: string },
): Promise<void> {
  const yes = io.interactive ? await io.confirm(question) : null;
  if (yes === true) return;
  throw new CommandFailure(
    "not_confirmed",
    yes === false
      ? `${undone}.`
      : `${undone}, because there is no terminal for the question: write ${line} to confirm.`,
  );
}

/** Checks --confirm. Throws UsageError for a value other than `meant`. `what` is the kind of the item, such as `relay`. */
export function requireSame(input: Input, what: string, meant: string): void {
  const confirm = input.text("confirm");
  if (confirm !== null && confirm !== meant)
    throw new UsageError(
      `--confirm is ${JSON.stringify(confirm)}, but the ${what} is ${meant}: write --confirm ${meant}.`,
    );
}
