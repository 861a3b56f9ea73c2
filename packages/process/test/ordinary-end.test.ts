// @live
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';

describe('the ordinary end of a process', () => {
  let folder: string;
  let pipe: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'ordinary-end-'));
    pipe = join(folder, 'pipe');
    execFileSync('mkfifo', [pipe]);
  });
  afterEach(() => {
    closeSync(openSync(pipe, constants.O_RDWR)); // ends a shell that still opens it
    rmSync(folder, { recursive: true });
  });

  for (const [hangs, what] of [
    ['a thread', 'a call hangs in a thread'],
    ['the pool of threads', 'a call hangs in the pool of threads'],
    ['nothing', 'an idle thread runs'],
  ] as const)
    it(`has the given exit code, although ${what}`, () => {
      const command = [join(import.meta.dirname, 'hung-call.ts'), pipe, join(folder, 'begun'), hangs, '2'];
      const { status, stdout, stderr } = spawnSync(process.execPath, command, {
        encoding: 'utf8',
        timeout: 50_000,
        killSignal: 'SIGKILL',
      });
      expect({ status, stdout, stderr }).to.deep.equal({ status: 2, stdout: 'the handlers of the end ran\n', stderr: '' });
    });
});
