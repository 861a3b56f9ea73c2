import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';

const hook = join(import.meta.dirname, '../../.githooks/commit-msg');
const body = 'Two voters of one term could lead.\nChecked by the simulator.';

describe('commit-msg hook', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-hook-'));
  });
  after(() => rmSync(folder, { recursive: true }));

  const run = (message: string) => {
    const file = join(folder, 'message');
    writeFileSync(file, message);
    const { status, stderr } = spawnSync(hook, [file], { encoding: 'utf8' });
    return { status, said: stderr.trim() };
  };

  for (const subject of [
    'raft-core: refuse votes for a shorter log',
    'storage-fsm, barrier: address records by their exact bytes',
    'docs: need no token for `sys/health`',
    `test: ${'x'.repeat(66)}`,
    `test: ${'é'.repeat(66)}`,
  ])
    it(`accepts "${subject}"`, () => {
      expect(run(`${subject}\n\n${body}\n`)).to.deep.equal({ status: 0, said: '' });
    });

  for (const [subject, says] of [
    ['refuse votes', 'begin the subject with the package'],
    ['Raft: refuse votes', 'begin the subject with the package'],
    ['raft-core:refuse votes', 'begin the subject with the package'],
    ['', 'begin the subject with the package'],
    [`test: ${'x'.repeat(67)}`, 'the subject has 73 characters; at most 72'],
    ['raft-core: refuse votes.', 'end the subject without a period'],
  ] as const)
    it(`refuses "${subject}"`, () => {
      const { status, said } = run(`${subject}\n\n${body}\n`);
      expect({ status, said }).to.deep.include({ status: 1 });
      expect(said).to.contain(says);
    });

  it('refuses a second line, and a message without a body', () => {
    expect(run(`test: add it\n${body}\n`).said).to.equal('commit message: leave the second line blank');
    for (const message of [
      'test: add it\n',
      'test: add it\n\n\n# a comment\n',
      'test: add it\n\nSigned-off-by: A <a@b.example>\n',
    ])
      expect(run(message).said).to.equal('commit message: add a body: why, and how it was checked');
  });

  it('reads no comments, and nothing below the scissors line', () => {
    const cut = '# ------------------------ >8 ------------------------\ndiff --git a b\n';
    expect(run(`# a comment\ntest: add it\n\n${body}\n${cut}`).status).to.equal(0);
    expect(run(`test: add it\n\n${cut}`).status).to.equal(1);
  });

  it('leaves messages alone that git makes', () => {
    for (const subject of ["Merge branch 'a'", 'Revert "b"', 'fixup! test: add it'])
      expect(run(`${subject}\n`)).to.deep.equal({ status: 0, said: '' });
  });
});
