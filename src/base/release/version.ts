/** The version of this service, without the change feed, which most commands do not need. */
import { version } from "../../../package.json" with { type: "json" };

/** The version in package.json, which is that of the newest release in the change feed. */
export const VERSION: string = version;

/** The words of a command line that ask for the version. */
export const VERSION_WORDS: readonly string[] = ["--version", "-v", "version"];
