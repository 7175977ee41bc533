/** Question to the person to prove again who they are, which the service asks before a sensitive action. One dialog shows it for all pages. */
import type { AuthenticationMethod } from "../../src/platform/account/authentication.ts";
import { makeCell } from "./cell.ts";

export interface Confirmation {
  /** Methods that the account has. */
  methods: readonly AuthenticationMethod[];
  /** Ends the question. False: the person did not confirm. */
  answer(isConfirmed: boolean): void;
}

/** The open question, or null. */
export const confirmation = makeCell<Confirmation | null>(null);

let asking: Promise<boolean> | null = null;

/** Asks the person, and resolves to true after a confirmation. Calls during a question share its answer. */
export function askConfirmation(methods: readonly AuthenticationMethod[]): Promise<boolean> {
  asking ??= new Promise((resolve) => {
    const answer = (isConfirmed: boolean): void => {
      asking = null;
      confirmation.set(null);
      resolve(isConfirmed);
    };
    confirmation.set({ methods, answer });
  });
  return asking;
}
