import { appendFileSync, chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { type KeyState, StateFile } from '../../src/migrate/state-file.ts';

const ends = { source: 'their cluster', target: 'our cluster' };
const before = { exportable: false, allowPlaintextBackup: true };
const entry = (status: KeyState['status'], latestVersion = 1): KeyState => ({ status, method: 'backup', latestVersion, before });

describe('the state file of a move', () => {
  let folder = '';
  let path = '';
  let opened: StateFile | undefined;
  const open = async (): Promise<StateFile> => {
    opened = await StateFile.open(path, ends);
    return opened;
  };
  const close = async (): Promise<void> => {
    await opened?.close();
    opened = undefined;
  };
  const text = (): string => readFileSync(path, 'utf8');
  const refusal = async (): Promise<string> => {
    try {
      await open();
    } catch (error) {
      if (error instanceof StartError) return error.message;
      throw error;
    }
    throw new Error('it was opened');
  };

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-state-'));
    path = join(folder, 'state.json');
  });
  afterEach(async () => {
    await close();
    rmSync(folder, { recursive: true });
  });

  it('keeps the last entry of each key for the next run, and is readable by its owner only', async () => {
    const state = await open();
    expect(state.key('transit', 'a')).to.equal(undefined);
    await state.record('transit', 'a', entry('started'));
    await state.record('transit', '__proto__', entry('refused'));
    await state.record('transit', 'a', entry('moved', 3));
    await close();
    const again = await open();
    expect(again.key('transit', 'a')).to.deep.equal(entry('moved', 3));
    expect(again.key('transit', '__proto__')).to.deep.equal(entry('refused'));
    expect(again.key('transit', 'toString')).to.equal(undefined);
    expect(statSync(path).mode & 0o777).to.equal(0o600);
  });

  it('writes one line for each change, and never what it has written before', async () => {
    const state = await open();
    let written = '';
    for (let at = 0; at < 20; at++) {
      await state.record('transit', `key-${at}`, entry('moved'));
      expect(text().startsWith(written)).to.equal(true);
      written = text();
    }
    expect(written.split('\n')).to.have.length(22);
  });

  it('ignores every incomplete last line, and writes over it', async () => {
    const state = await open();
    await state.record('transit', 'a', entry('moved'));
    await state.record('transit', 'b', entry('moved'));
    await close();
    const whole = text();
    const complete = whole.lastIndexOf('\n', whole.length - 2) + 1;
    for (const length of [0, 5, complete - 1, complete, complete + 1, whole.length - 1]) {
      writeFileSync(path, whole.slice(0, length));
      const cut = await open();
      expect(cut.key('transit', 'b'), `${length} bytes`).to.equal(undefined);
      expect(cut.key('transit', 'a') !== undefined).to.equal(length >= complete);
      await cut.record('transit', 'c', entry('started'));
      await close();
      const again = await open();
      expect(again.key('transit', 'c')).to.deep.equal(entry('started'));
      await close();
    }
  });

  it('is used by one run at a time, and can be read meanwhile', async () => {
    const state = await open();
    await state.record('transit', 'a', entry('moved'));
    const other = await StateFile.open(path, ends).catch((error: unknown) => error);
    expect(other).to.be.instanceOf(StartError).with.property('message').that.includes('another transitd migrate is using');
    appendFileSync(path, '{"torn');
    expect(StateFile.read(path, ends).key('transit', 'a')).to.deep.equal(entry('moved'));
    expect(text(), 'reading changes nothing').to.match(/torn$/);
    await close();
    await open();
  });

  it('refuses the file of another move, another file, and one that others can read, and leaves them as they are', async () => {
    for (const [content, says] of [
      ['{"format":1,"source":"x","target":"our cluster"}\n', /belongs to a move from x to our cluster/],
      ['{"format":2,"source":"their cluster","target":"our cluster"}\n', /is not a state file/],
      ['a letter without an end', /is not a state file/],
      [`${JSON.stringify({ format: 1, ...ends })}\nnot a line\n`, /is not a state file/],
      ['null\n', /is not a state file/],
    ] as const) {
      writeFileSync(path, content, { mode: 0o600 });
      expect(await refusal(), content).to.match(says);
      expect(text()).to.equal(content);
    }
    chmodSync(path, 0o644);
    expect(await refusal()).to.match(/mode 0644/);
    path = join(folder, 'missing', 'state.json');
    expect(await refusal()).to.match(/cannot be locked: ENOENT/);
  });
});
