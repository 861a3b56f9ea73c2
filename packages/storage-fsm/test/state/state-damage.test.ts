import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { StorageDamaged } from '../../src/errors.ts';
import { KeyValueMachine } from '../../src/state/key-value-machine.ts';
import { tablesInManifest } from '../../src/state/leveldb/manifest.ts';
import { encodeTransaction } from '../../src/store/codec.ts';
import type { RangePage } from '../../src/store/store.ts';

/** Everything that can be read: by iteration, by looking up every path that was ever written, and the metadata. */
interface Content {
  readonly applied: KeyValueMachine['applied'];
  readonly listed: RangePage['records'];
  readonly found: readonly unknown[];
}

const paths = Array.from({ length: 24 }, (_, i) => `kind/${i % 3}/name-${i}`);

async function contentOf(machine: KeyValueMachine): Promise<Content> {
  const { records } = await machine.range({ prefix: '' });
  return { applied: machine.applied, listed: records, found: paths.map((path) => machine.getSync(path)) };
}

describe('damage to the state on disk', () => {
  let home: string;
  /** The content on disk after each flush, by applied index. */
  const history = new Map<number, Content>();
  let latest = 0;
  let original: string;

  before(async () => {
    home = mkdtempSync(join(tmpdir(), 'damage-'));
    original = join(home, 'original');
    // Every opening moves the earlier writes into a table of their own, so that records, deletions and old revisions are spread over
    // several tables. The last values are large, so that the write-ahead log has more than one block.
    for (const valueBytes of [20, 20, 3000]) {
      const machine = await KeyValueMachine.open({ directory: original, base: 0 });
      history.set(latest, await contentOf(machine));
      for (let i = 0; i < 5; i++) {
        for (let entry = 0; entry < 4; entry++) apply(machine, valueBytes);
        await new Promise<void>((resolve, reject) => machine.flush((error) => (error ? reject(error) : resolve())));
        history.set(latest, await contentOf(machine));
      }
      await machine.close();
    }
  });
  after(() => rmSync(home, { recursive: true }));

  function apply(machine: KeyValueMachine, valueBytes: number): void {
    latest += 1;
    const writes = [0, 7, 13].map((step) => {
      const path = paths[(latest * 5 + step) % paths.length] ?? '';
      return { path, value: (latest + step) % 4 === 0 ? null : Buffer.alloc(valueBytes, `value ${latest} of ${path}`) };
    });
    machine.apply({ term: 1, index: latest, type: 'normal', data: encodeTransaction({ conditions: [], writes }) });
  }

  /** Opens a copy damaged by `harm` and returns the outcome. Any other outcome than these three fails the test. */
  async function outcomeOf(harm: (directory: string) => void): Promise<'same' | 'older' | 'damaged'> {
    const directory = join(home, 'copy');
    rmSync(directory, { recursive: true, force: true });
    cpSync(original, directory, { recursive: true });
    harm(directory);
    let machine: KeyValueMachine;
    try {
      machine = await KeyValueMachine.open({ directory, base: 0 });
    } catch (error) {
      expect(error).to.be.instanceOf(StorageDamaged);
      expect(error)
        .to.have.property('message')
        .that.matches(/^[^\n]+\.$/);
      return 'damaged';
    }
    try {
      const content = await contentOf(machine);
      expect(content).to.deep.equal(history.get(content.applied.appliedIndex));
      return content.applied.appliedIndex === latest ? 'same' : 'older';
    } finally {
      await machine.close();
    }
  }

  /** The files that make up the database. An interrupted compaction may leave tables that the manifest does not name. */
  const files = () => {
    const names = readdirSync(original).filter((name) => name !== 'LOCK');
    const manifest = names.find((name) => name.startsWith('MANIFEST-')) ?? '';
    const tables = tablesInManifest(readFileSync(join(original, manifest)));
    return names.filter((name) => !name.endsWith('.ldb') || tables.has(Number.parseInt(name, 10)));
  };
  const flip = (name: string, at: number) => (directory: string) => {
    const bytes = readFileSync(join(directory, name));
    bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << (at % 8)), at);
    writeFileSync(join(directory, name), bytes);
  };

  it('covers tables, a log and the files that name them', () => {
    const kinds = new Set(files().map((name) => name.replace(/\d+/, '')));
    expect([...kinds]).to.include.members(['CURRENT', 'MANIFEST-', '.ldb', '.log']);
    expect(files().filter((name) => name.endsWith('.ldb'))).to.have.length.above(1);
  });

  it('is detected for a flipped bit anywhere, or the content is exactly that of an applied index', async () => {
    const outcomes = new Map<string, Set<string>>();
    for (const name of files()) {
      const { length } = readFileSync(join(original, name));
      const seen = new Set<string>();
      // With an odd step, the flipped bit cycles through all bits of a byte.
      for (let at = 0; at < length; at += Math.ceil(length / (name.startsWith('LOG') ? 20 : 150)) | 1)
        seen.add(await outcomeOf(flip(name, at)));
      outcomes.set(name, seen);
    }
    for (const [name, seen] of outcomes) {
      if (name.endsWith('.ldb')) {
        expect(seen, name).to.include('damaged');
        expect(seen, name).not.to.include('older');
      }
      // LevelDB silently drops the rest of a 32 KiB block after a bad record: the end of the log, or a gap followed by newer writes.
      if (name.endsWith('.log')) expect([...seen], name).to.include.members(['damaged', 'older']);
      if (name.startsWith('LOG')) expect([...seen], name).to.deep.equal(['same']);
    }
  });

  it('is detected after a file was truncated or removed, unless the content equals that of an applied index', async () => {
    for (const name of files()) {
      const { length } = readFileSync(join(original, name));
      const seen = new Set<string>();
      for (let part = 0; part < 8; part++) {
        seen.add(await outcomeOf((directory) => truncateSync(join(directory, name), Math.floor((length * part) / 8))));
      }
      seen.add(await outcomeOf((directory) => unlinkSync(join(directory, name))));
      if (name.endsWith('.ldb')) expect([...seen], name).to.deep.equal(['damaged']);
      if (name.endsWith('.log')) expect([...seen], name).to.deep.equal(['older']);
    }
  });
});
