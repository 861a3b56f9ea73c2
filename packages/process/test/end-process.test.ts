// @live
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';

describe('endProcess', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'end-process-'));
    execFileSync('mkfifo', [join(folder, 'pipe')]);
  });
  after(() => rmSync(folder, { recursive: true }));

  for (const code of [0, 70, 74])
    it(`ends with ${code} although a thread hangs, after the handlers of the end`, () => {
      const script = join(import.meta.dirname, 'hung-thread.ts');
      const { status, stdout, stderr } = spawnSync(process.execPath, [script, join(folder, 'pipe'), String(code)], {
        encoding: 'utf8',
        timeout: 50_000,
        killSignal: 'SIGKILL',
      });
      expect({ status, stdout, stderr }).to.deep.equal({ status: code, stdout: 'the handlers of the end ran\n', stderr: '' });
    });
});
