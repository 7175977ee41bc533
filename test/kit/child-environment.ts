/**
 * Loaded before every test file: removes the variables with which scripts/test.ts changes how Bun compiles in the test process. Child processes, above
 * all the service, inherit the variables and must run as they do elsewhere.
 */
for (const name of Object.keys(process.env)) if (name.startsWith("BUN_JSC_")) delete process.env[name];
