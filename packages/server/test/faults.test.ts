import { once } from 'node:events';
import { mkdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { exitCode, type Logger } from '@transitd/process';
import { StorageFailed } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { openOrExitCode, storageExitCode } from '../src/faults.ts';

describe('the opening of a node', () => {
  const opened = async (open: () => Promise<unknown>) => {
    const reasons: string[] = [];
    const log = { fatal: ({ reason }: { readonly reason: string }) => void reasons.push(reason) } as unknown as Logger;
    const outcome = await openOrExitCode(open as () => Promise<never>, log).catch((error: Error) => error.message);
    return { outcome, reasons };
  };

  it('ends with the exit code of the storage when the system refuses a file or a folder', async () => {
    for (const refused of [() => readFile(`${tmpdir()}/transitd-missing`), () => mkdir(tmpdir())]) {
      const { outcome, reasons } = await opened(refused);
      expect(outcome).to.equal(exitCode.storage);
      expect(reasons.join()).to.include(tmpdir());
    }
  });

  it('fails as a bug does, so that it is tried again, when the disk is full or too many files are open', async () => {
    for (const code of ['ENOSPC', 'EMFILE']) {
      const { outcome } = await opened(() => Promise.reject(Object.assign(new Error(code), { code, syscall: 'write' })));
      expect(outcome).to.equal(code);
    }
  });

  it('fails as a bug does when the system refuses a connection or a name', async () => {
    for (const [host, code] of [
      ['127.0.0.1', 'ECONNREFUSED'],
      ['name.invalid', 'getaddrinfo'],
    ] as const) {
      const { outcome, reasons } = await opened(() => once(connect({ host, port: 1 }), 'connect'));
      expect(outcome).to.include(code);
      expect(reasons).to.deep.equal([]);
    }
  });
});

describe('the end of a run by an error', () => {
  it('has the exit code of the storage if the storage failed, and is that of a bug otherwise', () => {
    expect(storageExitCode(new StorageFailed('the last flush failed'))).to.equal(exitCode.storage);
    const bug = new TypeError('a bug');
    expect(() => storageExitCode(bug)).to.throw(bug);
  });
});
