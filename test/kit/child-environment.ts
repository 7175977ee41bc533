/**
 * Runs before every test file. It removes the variables with which scripts/test.ts changes how Bun compiles in the test process. Child processes,
 * mainly the service, inherit the environment and must run as they do elsewhere.
 */
for (const name of Object.keys(process.env)) if (name.startsWith("BUN_JSC_")) delete process.env[name];
