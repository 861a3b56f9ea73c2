import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { Level } from 'level';
import { tablesInManifest } from '../../../src/state/leveldb/manifest.ts';
import { inTemporaryDirectory } from '../../directory/temporary-directory.ts';

type Inspectable = Level & { compactRange(start: string, end: string): Promise<void>; getProperty(name: string): string };

/** Creates a manifest with many edits; returns it with the tables that LevelDB itself lists at the end. */
const makeManifest = (): Promise<{ manifest: Buffer; tables: number[] }> =>
  inTemporaryDirectory(async (directory) => {
    // level on Node is classic-level, which has two more methods. The long keys fill several blocks of the manifest.
    const level = new Level(directory, { compression: false, writeBufferSize: 64 * 1024 }) as Inspectable;
    const key = (i: number) => `${i % 1000}/${'k'.repeat(900)}`;
    for (let i = 0; i < 1500; i++) await level.put(key(i), `value ${i} `.repeat(200));
    await level.compactRange('0', '5'); // waits until no compaction is running
    const tables = [...level.getProperty('leveldb.sstables').matchAll(/^ (\d+):/gm)].map(([, number]) => Number(number));
    await level.close();
    const name = readdirSync(directory).find((file) => file.startsWith('MANIFEST'));
    return { manifest: readFileSync(join(directory, String(name))), tables };
  });

describe('tablesInManifest', () => {
  let manifest: Buffer;
  let tables: number[];
  before(async () => {
    ({ manifest, tables } = await makeManifest());
  });

  it('returns the tables that LevelDB itself lists, over several blocks and many edits', () => {
    expect(manifest.length).to.be.above(2 * 32 * 1024);
    expect(tables).to.have.length.above(1);
    expect([...tablesInManifest(manifest)].sort()).to.deep.equal(tables.sort());
  });

  it('stops without an error at bytes that are not a manifest', () => {
    fc.assert(
      fc.property(fc.nat(manifest.length - 1), fc.nat(255), fc.nat(manifest.length), (at, byte, cut) => {
        const bad = Buffer.from(manifest);
        bad.writeUInt8(byte, at);
        tablesInManifest(bad.subarray(0, cut));
      }),
    );
  });
});
