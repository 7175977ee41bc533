/**
 * Completes command lines for bash, zsh, fish and PowerShell. A shell's script only calls `relay __complete`. The candidates come from the
 * registry of commands and from existing relays, profiles and apps. Completion reports no error and never waits longer than a second.
 */
import { type Command, formatUnknownChoice, type NameKind, type Option, UsageError } from "../command.ts";
import type { Io } from "../io.ts";
import { findNames } from "./known-name.ts";
import { COMPLETE_WORD, findCommand, HELP, parseCommand, resolveAlias, SHOWING } from "./parse.ts";

const SHELLS = ["bash", "zsh", "fish", "powershell"] as const;

const SCRIPTS: Readonly<Record<(typeof SHELLS)[number], string>> = {
  bash: `_relay() {
  local line kind=
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) kind=f ;;
      :folders) kind=d ;;
      *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
  done < <("\${COMP_WORDS[0]}" ${COMPLETE_WORD} "=\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
  if [ -n "$kind" ]; then
    compopt -o filenames 2>/dev/null
    while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -$kind -- "\${COMP_WORDS[COMP_CWORD]}")
  fi
}
complete -F _relay relay`,
  zsh: `#compdef relay
_relay() {
  local line tab=$'\\t'
  local -a values
  for line in "\${(@f)$("\${words[1]}" ${COMPLETE_WORD} "=\${words[CURRENT]}" "\${(@)words[2,CURRENT-1]}" 2>/dev/null)}"; do
    case $line in
      "") ;;
      :files) _files ;;
      :folders) _files -/ ;;
      *) values+=("\${\${line%%$tab*}//:/\\\\:}:\${line#*$tab}") ;;
    esac
  done
  (( \${#values} )) && _describe -V relay values
  return 0
}
if [ "\${funcstack[1]}" = _relay ]; then _relay "$@"; else compdef _relay relay; fi`,
  fish: `function __relay_complete
    set -l current (commandline -ct)
    set -l before (commandline -opc)
    for line in (relay ${COMPLETE_WORD} "=$current" $before[2..-1] 2>/dev/null)
        switch $line
            case ":files"
                __fish_complete_path "$current"
            case ":folders"
                __fish_complete_directories "$current"
            case "*"
                echo $line
        end
    end
end
complete -c relay -f -a "(__relay_complete)"`,
  // PowerShell itself offers files, with their folder and quotes, if a native command's completer returns nothing.
  powershell: `Register-ArgumentCompleter -Native -CommandName relay -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $before = @($commandAst.CommandElements | Select-Object -Skip 1 | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { "$_" })
    & relay ${COMPLETE_WORD} "=$wordToComplete" @before 2>$null | ForEach-Object {
        $value, $help = $_ -split "\`t", 2
        if ($value -ne ":files" -and $value -ne ":folders") {
            if (-not $help) { $help = $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, "ParameterValue", $help)
        }
    }
}`,
};

export const completion: Command = {
  words: ["completion"],
  summary: "print a completion script for a shell",
  details: [
    "The script completes commands, options and values, and the names of relays, profiles and apps. Install it once:",
    "  bash: add  source <(relay completion bash)  to ~/.bashrc",
    "  zsh: add  source <(relay completion zsh)  to ~/.zshrc, below compinit",
    "  fish: relay completion fish > ~/.config/fish/completions/relay.fish",
    "  PowerShell: add  relay completion powershell | Out-String | Invoke-Expression  to $PROFILE",
  ].join("\n"),
  arguments: [{ name: "shell", help: SHELLS.join(", "), of: SHELLS }],
  options: [],
  examples: ["relay completion bash", "relay completion fish"],
  async run(input, io) {
    const shell = SHELLS.find((one) => one === input.first());
    if (shell === undefined) throw new UsageError(formatUnknownChoice("The shell", input.first(), SHELLS));
    io.print(SCRIPTS[shell]);
  },
};

interface Candidate {
  value: string;
  help?: string;
}

const FILES: Readonly<Partial<Record<NameKind, string>>> = { file: ":files", folder: ":folders" };

/** Prints the candidates, one per line, each with a tab and its help. Never throws. */
export async function completeLine(
  asked: readonly string[],
  commands: readonly Command[],
  io: Io,
): Promise<void> {
  const [typed = "", ...before] = asked;
  const current = typed.replace(/^=/, "");
  try {
    // Some shells split an option at its equals sign and pass the sign as a separate word.
    const words = before.filter((word, at) => word !== "=" || !before[at - 1]?.startsWith("--"));
    const found = await candidates(words, current === "=" ? "" : current, commands, io);
    for (const { value, help } of found)
      if (value.startsWith(":") || value.startsWith(current.replace(/^=/, "")))
        io.print(help === undefined ? value : `${value}\t${help}`);
  } catch {
    // A completion must not print errors.
  }
}

async function candidates(
  before: readonly string[],
  current: string,
  commands: readonly Command[],
  io: Io,
): Promise<Candidate[]> {
  const found = findCommand(before, commands);
  if (found === null) {
    const asked = before[0] === "help" ? before.slice(1) : before;
    return nextWords(resolveAlias(asked, commands), commands);
  }
  const { command, rest } = found;
  const options = [...command.options, HELP, ...SHOWING];
  const asked = (word: string): Option | undefined => options.find(({ name }) => `--${name}` === word);
  const last = asked(rest.at(-1) ?? "");
  if (last?.value !== undefined) return await valuesOf(last, rest, command, io);
  const [, name, value] = /^--([a-z-]+)=(.*)$/.exec(current) ?? [];
  if (name !== undefined && value !== undefined) {
    const option = asked(`--${name}`);
    const values = option === undefined ? [] : await valuesOf(option, rest, command, io);
    // A shell that treats the option and its value as one word cannot complete a path in it.
    return values
      .filter((one) => !one.value.startsWith(":"))
      .map((one) => ({ ...one, value: `--${name}=${one.value}` }));
  }
  if (current.startsWith("-"))
    return options
      .filter(({ name, list }) => list === true || !rest.includes(`--${name}`))
      .map(({ name, help }) => ({ value: `--${name}`, help }));
  const places = rest.filter(
    (word, at) => !word.startsWith("-") && asked(rest[at - 1] ?? "")?.value === undefined,
  );
  const wanted = command.arguments ?? [];
  const place = wanted[places.length] ?? (wanted.at(-1)?.many === true ? wanted.at(-1) : undefined);
  return place === undefined ? [] : await valuesOf(place, rest, command, io);
}

/** Lists each possible next word of a command once. */
function nextWords(before: readonly string[], commands: readonly Command[]): Candidate[] {
  const next = new Map<string, Candidate>();
  for (const { words, summary } of commands) {
    const word = words[before.length];
    if (word === undefined || !before.every((one, at) => words[at] === one)) continue;
    const isGroup = words.length > before.length + 1;
    const known = next.get(word)?.help;
    const help = isGroup
      ? [known, words[before.length + 1]].filter((one) => one !== undefined).join(", ")
      : summary;
    next.set(word, { value: word, help });
  }
  if (before.length === 0) next.set("help", { value: "help", help: "explain a command or a code" });
  return [...next.values()];
}

async function valuesOf(
  { of }: Pick<Option, "of">,
  rest: readonly string[],
  command: Command,
  io: Io,
): Promise<Candidate[]> {
  if (of === undefined) return [];
  if (typeof of !== "string") return of.map((value) => ({ value }));
  const files = FILES[of];
  if (files !== undefined) return [{ value: files }];
  // The line is incomplete while the user types, so no argument is required.
  const bare = { ...command, arguments: [{ name: "any", help: "", many: true, optional: true }] };
  const complete = rest.at(-1)?.startsWith("--") === true ? rest.slice(0, -1) : rest;
  const input = parseCommand(bare, complete, io.env);
  return (await findNames(of, input, io)).map((value) => ({ value }));
}
