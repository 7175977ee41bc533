/** The flags that decide which code an executable contains. docs/adr/0059-start-time.md has their sizes and times. */
export const BUILD_FLAGS: readonly string[] = [
  "--compile",
  "--minify",
  "--format=esm",
  // Each command loads only its own code.
  "--splitting",
  // Compiles the code of modules, which runs at every start, but no functions, most of which no start calls.
  "--bytecode",
  "--bytecode-depth=0",
  // Code that runs only at a start stays in the interpreter. main.ts ends this.
  "--compile-jit-policy=30",
  // The executable must not read the configuration files of Bun in the working directory.
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
];
