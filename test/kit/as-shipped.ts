/**
 * Loaded before every test file: how scripts/test.ts lets the tests' own processes compile is theirs alone. What they start, the service first of all,
 * is given this process's variables and runs as it does elsewhere.
 */
for (const name of Object.keys(process.env)) if (name.startsWith("BUN_JSC_")) delete process.env[name];
