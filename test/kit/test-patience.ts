/** Runs before every test file. Tests and hooks get as long as a slow machine needs, so none sets its own limit. */
import { setDefaultTimeout } from "bun:test";
import { TEST_MS } from "./patience.ts";

setDefaultTimeout(TEST_MS);
