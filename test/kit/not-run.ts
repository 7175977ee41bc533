/** Says which tests do not run on this machine, and why. The test runner prints it before the last line. */

/** `what` names the tests, `why` the reason, for example "the code in go" and "this machine has no go". */
export function tellNotRun(what: string, why: string): void {
  console.log(`Not run: ${what}, because ${why}.`);
}
