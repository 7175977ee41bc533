/** Packs files into an ar archive, the outer format of a Debian package. */

interface ArFile {
  /** At most 15 characters, without a slash. */
  readonly name: string;
  readonly content: Uint8Array;
}

/** Packs the files in the given order. They belong to root, with the permissions 644 and one time. */
export function makeAr(files: readonly ArFile[], time: Date): Uint8Array {
  const seconds = String(time.getTime() / 1000);
  const parts: Uint8Array[] = [Buffer.from("!<arch>\n")];
  for (const { name, content } of files) {
    const fields = [
      [name, 16],
      [seconds, 12],
      ["0", 6],
      ["0", 6],
      ["100644", 8],
      [String(content.length), 10],
    ] as const;
    const header = fields.map(([text, width]) => text.padEnd(width)).join("");
    parts.push(Buffer.from(`${header}\`\n`), content);
    // Each file begins at an even position.
    if (content.length % 2 === 1) parts.push(Buffer.from("\n"));
  }
  return Buffer.concat(parts);
}
