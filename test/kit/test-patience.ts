/** Loaded before every test file: tests and hooks have as long as a slow machine needs, whichever way they are run; none sets a limit of its own. */
import { setDefaultTimeout } from "bun:test";
import { TEST_MS } from "./patience.ts";

setDefaultTimeout(TEST_MS);
