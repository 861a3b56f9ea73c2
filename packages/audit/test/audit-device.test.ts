import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { AuditDevice, type AuditDeviceOptions } from '../src/audit-device.ts';
import { type Appendable, openAuditFile } from '../src/audit-file.ts';
import { verifyAudit } from '../src/verify.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Takes `room` bytes in all; what each write was, as text. */
class Memory {
  room = Number.POSITIVE_INFINITY;
  readonly writes: string[] = [];
  synced = 0;
  hold: Promise<void> | undefined;

  get text(): string {
    return this.writes.join('');
  }

  open = async (): Promise<Appendable> => ({
    write: async (bytes) => {
      await this.hold;
      if (this.room <= 0) throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      const part = bytes.subarray(0, this.room);
      this.room -= part.length;
      this.writes.push(part.toString());
      return part.length;
    },
    sync: async () => {
      this.synced += 1;
    },
    close: async () => undefined,
  });
}

describe('a sink of the audit', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-audit-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const sinkTo = (open: AuditDeviceOptions['open'], options: Partial<AuditDeviceOptions> = {}) =>
    new AuditDevice({ name: 's', open, ...options });
  const entryOf = (number: number): string => JSON.stringify({ number });
  const whole = async (...files: string[]): Promise<number> => verifyAudit(files, () => undefined);

  it('writes what comes in one turn at once, and what comes during a write with the next', async () => {
    const memory = new Memory();
    const device = sinkTo(memory.open);
    let release = (): void => undefined;
    memory.hold = new Promise((resolve) => {
      release = resolve;
    });
    const first = [1, 2, 3].map((number) => device.write(entryOf(number)));
    await turn();
    await turn();
    const second = [4, 5].map((number) => device.write(entryOf(number)));
    release();
    await Promise.all([...first, ...second]);
    expect(memory.writes.map((text) => text.split('\n').length - 1)).to.deep.equal([3, 2]);
  });

  it('syncs each batch when it is to, and never otherwise', async () => {
    for (const [sync, synced] of [
      [true, 1],
      [false, 0],
    ] as const) {
      const memory = new Memory();
      const device = sinkTo(memory.open, { sync });
      await Promise.all([1, 2].map((number) => device.write(entryOf(number))));
      expect(memory.synced).to.equal(synced);
    }
  });

  it('makes folders and file for their owner, with the mode that is asked for', async () => {
    const path = join(folder, 'a/b/audit.log');
    const device = sinkTo(() => openAuditFile({ path, mode: 0o640 }));
    await device.write(entryOf(1));
    expect(statSync(path).mode & 0o777).to.equal(0o640);
    expect(statSync(join(folder, 'a')).mode & 0o777).to.equal(0o700);
    await device.close();
  });

  it('goes on in a new file of its name when the old one was moved, in one chain', async () => {
    const path = join(folder, 'audit.log');
    const device = sinkTo(() => openAuditFile({ path, mode: 0o600 }));
    await device.write(entryOf(1));
    renameSync(path, `${path}.1`);
    await device.write(entryOf(2));
    await device.reopen();
    await device.write(entryOf(3));
    await device.close();
    const numbers = (file: string) =>
      readFileSync(file, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).number);
    expect([numbers(`${path}.1`), numbers(path)]).to.deep.equal([[1, 2], [3]]);
    expect(await whole(`${path}.1`, path)).to.equal(0);
    expect(await whole(path, `${path}.1`), 'in the wrong order').to.equal(2);
  });

  it('goes on behind what an earlier process has left, whole or torn', async () => {
    const path = join(folder, 'audit.log');
    for (const torn of ['', '{"chain":']) {
      const device = sinkTo(() => openAuditFile({ path, mode: 0o600 }));
      await device.write(entryOf(1));
      await device.write(JSON.stringify({ long: 'x'.repeat(200_000) }));
      await device.close();
      writeFileSync(path, torn, { flag: 'a' });
    }
    const device = sinkTo(() => openAuditFile({ path, mode: 0o600 }));
    await device.write(entryOf(1));
    await device.close();
    expect(await whole(path)).to.equal(0);
  });

  it('fails the entries that a full disk does not take whole, tells so once, and works again when there is room', async () => {
    const memory = new Memory();
    const told: string[] = [];
    const device = sinkTo(memory.open, {
      onFailure: ({ message }) => told.push(message),
      onRecovery: () => told.push('works'),
    });
    await device.write(entryOf(0));
    memory.room = memory.text.length * 1.5; // one line more, and a part of the next
    memory.room += 30;
    const outcomes = await Promise.allSettled([1, 2, 3].map((number) => device.write(entryOf(number))));
    expect(outcomes.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'rejected']);
    expect((await Promise.allSettled([device.write(entryOf(4))]))[0]?.status).to.equal('rejected');
    memory.room = Number.POSITIVE_INFINITY;
    await device.write(entryOf(5));
    while (told.length < 2) await turn();
    expect(told).to.deep.equal(['full', 'works']);
    const file = join(folder, 'copy');
    writeFileSync(file, memory.text);
    expect(await whole(file)).to.equal(0);
    expect(memory.text.split('\n').length, 'three entries, the torn one and nothing').to.equal(5);
  });

  it('takes nothing while a write is stuck, and goes on when it ends', async () => {
    const memory = new Memory();
    const device = sinkTo(memory.open, { stuckMs: 1 });
    let release = (): void => undefined;
    memory.hold = new Promise((resolve) => {
      release = resolve;
    });
    const failure = async (writing: Promise<void>): Promise<string> =>
      writing.then(
        () => '',
        (error: Error) => error.message,
      );
    expect(await failure(device.write(entryOf(1)))).to.match(/takes too long/);
    expect(await failure(device.write(entryOf(2)))).to.match(/takes too long/);
    release();
    memory.hold = undefined;
    while ((await failure(device.write(entryOf(3)))) !== '') await turn();
    expect(memory.text).to.include('"number":1').and.to.include('"number":3').and.not.to.include('"number":2');
  });

  it('refuses what is no regular file', async () => {
    const device = sinkTo(() => openAuditFile({ path: '/dev/null', mode: 0o666 }));
    await device.open().then(
      () => expect.fail('it was opened'),
      (error: Error) => expect(error.message).to.equal('it is no regular file'),
    );
  });
});
