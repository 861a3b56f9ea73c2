// @live
import { spawnSync } from 'node:child_process';
import { expect } from 'chai';
import { completionScript, completions } from '../../src/local/completion.ts';
import { createProgram } from '../../src/program.ts';
import { noLocalWork } from '../no-local-work.ts';

const program = await createProgram(() => undefined, noLocalWork);

/** Returns the completions that bash offers after these words. */
function completionsIn(...words: readonly string[]): readonly string[] {
  const script = `${completionScript('bash', program)}
COMP_WORDS=(transitd "$@"); COMP_CWORD=$#; _transitd; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { status, stdout, stderr } = spawnSync('bash', ['--norc', '-c', script, 'bash', ...words], { encoding: 'utf8' });
  expect([status, stderr]).to.deep.equal([0, '']);
  return stdout.split('\n').filter((word) => word !== '');
}

describe('completion', () => {
  for (const { words, all, some } of [
    { words: ['oper'], all: ['operator'] },
    { words: ['operator', 'raft', 'pro'], all: ['promote'] },
    { words: ['operator', 'raft', 'snapshot', ''], all: ['save', 'restore', 'inspect'] },
    { words: ['operator', '--format', 'json', 'raft', 'li'], all: ['list-peers'] },
    { words: ['operator', 'init', '--key-'], all: ['--key-shares', '--key-threshold'] },
    { words: ['key', 'encrypt', 'orders', '--key-v'], all: ['--key-version'] },
    { words: ['read', ''], all: [] },
    { words: [''], some: ['server', 'status', 'login', 'operator', 'doctor'] },
    { words: ['nonsense', ''], some: ['server', 'status'] },
  ] as { words: string[]; all?: string[]; some?: string[] }[])
    it(`in bash, after ${JSON.stringify(words.join(' '))}`, () => {
      if (all !== undefined) expect(completionsIn(...words)).to.have.members(all);
      else expect(completionsIn(...words)).to.include.members(some ?? []);
    });

  it('covers every command in every shell', () => {
    const paths = completions(program).map(({ path }) => path);
    expect(paths).to.include.members(['', 'operator raft autopilot set-config', 'key encrypt', 'completion']);
    for (const shell of ['bash', 'zsh', 'fish'] as const)
      for (const path of paths.filter((one) => one !== ''))
        expect(completionScript(shell, program), `${shell} ${path}`).to.include(`'${path}'`);
  });
});
