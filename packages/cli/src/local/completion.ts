import type { Command } from 'commander';

/** Completions of one command: its path, its subcommands and its options. */
export interface CommandCompletions {
  /** `operator raft`; empty for the program. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly { readonly name: string; readonly description: string }[];
}

/** Returns the completions of a command and all its subcommands. */
export function completions(command: Command, path: readonly string[] = []): readonly CommandCompletions[] {
  const subcommands = command.commands.map((one) => ({ name: one.name(), description: one.description() }));
  const options = command.options.flatMap(({ long, description }) => (long ? [{ name: long, description }] : []));
  return [
    { path: path.join(' '), commands: subcommands, options: [...options, { name: '--help', description: 'show the help' }] },
    ...command.commands.flatMap((one) => completions(one, [...path, one.name()])),
  ];
}

export const shells = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof shells)[number];

/** Returns the completion script of a shell. */
export function completionScript(shell: Shell, program: Command): string {
  const all = completions(program);
  return shell === 'fish' ? fishScript(all) : shell === 'zsh' ? zshScript(all) : bashScript(all);
}

const names = (listed: readonly { readonly name: string }[]): string => listed.map(({ name }) => name).join(' ');

const cases = (all: readonly CommandCompletions[]): string =>
  all
    .map(({ path, commands, options }) => `    '${path}') commands='${names(commands)}' options='${names(options)}' ;;`)
    .join('\n');
const pathCases = (all: readonly CommandCompletions[]): string =>
  all
    .filter(({ path }) => path !== '')
    .map(({ path }) => `'${path}'`)
    .join('|');

/** The part shared by bash and zsh: finds the command that the words before the cursor name, and its completions. */
const findCommand = (
  all: readonly CommandCompletions[],
  { current, before }: { readonly current: string; readonly before: string },
): string =>
  `  local current=\${${current}} at='' word commands='' options=''
  for word in "\${${before}}"; do
    case "\${at:+$at }$word" in
      ${pathCases(all)}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$at" in
${cases(all)}
  esac`;

function bashScript(all: readonly CommandCompletions[]): string {
  return `# transitd completion for bash: source <(transitd completion bash)
_transitd() {
${findCommand(all, { current: 'COMP_WORDS[COMP_CWORD]', before: 'COMP_WORDS[@]:1:COMP_CWORD-1' })}
  if [[ $current == -* ]]; then COMPREPLY=($(compgen -W "$options" -- "$current"))
  else COMPREPLY=($(compgen -W "$commands" -- "$current")); fi
}
complete -o default -F _transitd transitd
`;
}

function zshScript(all: readonly CommandCompletions[]): string {
  return `#compdef transitd
# transitd completion for zsh: source <(transitd completion zsh)
_transitd() {
${findCommand(all, { current: 'words[CURRENT]', before: '(@)words[2,CURRENT-1]' })}
  if [[ $current == -* ]]; then compadd -- \${=options}
  elif [[ -n $commands ]]; then compadd -- \${=commands}
  else _files; fi
}
compdef _transitd transitd
`;
}

const fishText = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`;

function fishScript(all: readonly CommandCompletions[]): string {
  const lines = all.flatMap(({ path, commands, options }) => {
    const here = `-c transitd -n ${fishText(`__transitd_at ${fishText(path)}`)}`;
    return [
      ...commands.map(({ name, description }) => `complete ${here} -f -a ${name} -d ${fishText(description)}`),
      ...options.map(({ name, description }) => `complete ${here} -l ${name.slice(2)} -d ${fishText(description)}`),
    ];
  });
  return `# transitd completion for fish: transitd completion fish | source
function __transitd_at
  set -l at
  for word in (commandline -opc)[2..]
    switch (string join ' ' $at $word)
      case ${all.flatMap(({ path }) => (path === '' ? [] : [fishText(path)])).join(' ')}
        set at $at $word
    end
  end
  test (string join ' ' $at) = "$argv[1]"
end
${lines.join('\n')}
`;
}
