import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, readdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { Level } from 'level';
import { StorageDamaged, StorageFailed, StorageInUse } from '../../src/errors.ts';
import { emptyMeta, encodeMeta, encodeRecord, metaKey } from '../../src/state/state-record.ts';
import { StateStore } from '../../src/state/state-store.ts';
import { addToDigest, emptyDigest, recordDigest } from '../../src/store/digest.ts';
import { inTemporaryDirectory } from '../directory/temporary-directory.ts';
import { rejection } from '../store/store.suite.ts';

const record = { path: 'a/b', value: Buffer.from('a value that is looked for'), revision: 3 };
const meta = { appliedIndex: 3, valuesWritten: 1, digest: recordDigest(record) };

async function writeOne(directory: string): Promise<void> {
  const store = await StateStore.open(directory);
  await store.write(new Map([[record.path, record]]), meta);
  await store.close();
}

async function withStore(directory: string, use: (store: StateStore) => Promise<void>): Promise<void> {
  const store = await StateStore.open(directory);
  await use(store).finally(() => store.close());
}

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

describe('StateStore', () => {
  it('holds the records of a write after it is opened again', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = join(parent, 'state');
      await writeOne(directory);
      const store = await StateStore.open(directory);
      expect(store.metaAtOpen).to.deep.equal(meta);
      expect(store.getSync('a/b')).to.deep.equal({ value: record.value, revision: 3 });
      await store.close();
    }));

  it('makes its directory and files private, also files created under an open umask', () =>
    inTemporaryDirectory(async (parent) => {
      const directory = join(parent, 'state');
      await mkdir(directory, { mode: 0o755 });
      const umask = process.umask(0o022);
      await writeOne(directory).finally(() => process.umask(umask));
      await chmod(join(directory, 'CURRENT'), 0o644);
      await (await StateStore.open(directory)).close();
      expect(await modeOf(directory)).to.equal('700');
      for (const name of await readdir(directory)) expect(await modeOf(join(directory, name)), name).to.equal('600');
    }));

  it('returns what was written last, also for records that were read before', () =>
    inTemporaryDirectory((parent) =>
      withStore(join(parent, 'state'), async (store) => {
        expect(store.getSync('a/b')).to.equal(undefined);
        for (const revision of [3, 4, 5]) {
          const value = Buffer.from(`value ${revision}`);
          await store.write(new Map([['a/b', { value, revision }]]), { ...meta, appliedIndex: revision });
          expect(store.getSync('a/b')).to.deep.equal({ value, revision });
        }
        await store.write(new Map([['a/b', { value: null, revision: 6 }]]), { ...meta, appliedIndex: 6 });
        expect(store.getSync('a/b')).to.equal(undefined);
      }),
    ));

  it('finds a record by its exact name, of any length and any letters', () =>
    inTemporaryDirectory(async (directory) => {
      // classic-level 3.0.0 copies a string key into a buffer as long as the longest key so far, and truncates a key that does not fit.
      const letters = ['é', 'ह', '🔑', '\ufffd'];
      const lengths = [...Array(12).keys()].map((length) => length + 58).concat(124, 125, 126, 127, 255, 1000);
      const names = lengths.flatMap((length) => letters.map((letter) => 'a'.repeat(length) + letter));
      const rows = names.map((path, i) => ({ path, value: Buffer.from(path), revision: i + 1 }));
      const digest = rows.map(recordDigest).reduce(addToDigest, emptyDigest);
      await withStore(directory, (store) =>
        store.write(new Map(rows.map((row) => [row.path, row])), { appliedIndex: names.length, valuesWritten: 1, digest }),
      );
      for (const name of names)
        await withStore(directory, async (store) => {
          expect(store.getSync(name)?.value.toString(), name).to.equal(name);
          for (const longer of [`${name}é`, `${name}a`]) expect(store.getSync(longer), longer).to.equal(undefined);
        });
    }));

  it('refuses a directory that is already open', () =>
    inTemporaryDirectory(async (directory) => {
      const store = await StateStore.open(directory);
      expect(await rejection(StateStore.open(directory))).to.be.instanceOf(StorageInUse);
      await store.close();
    }));

  it('stores values uncompressed, so that a search of the disk for plaintext is reliable', () =>
    inTemporaryDirectory(async (directory) => {
      await writeOne(directory);
      await writeOne(directory); // the second opening moves the first write into a table
      const tables = readdirSync(directory).filter((name) => name.endsWith('.ldb'));
      expect(tables).to.have.length(1);
      expect(readFileSync(join(directory, String(tables[0]))).includes(record.value)).to.equal(true);
    }));

  for (const { name, value, says } of [
    { name: 'of a newer format', value: newerMeta(), says: 'has format 2' },
    { name: 'with a flipped bit', value: withWrongBit(encodeMeta(meta)), says: 'unreadable applied index' },
    { name: 'that is truncated', value: encodeMeta(meta).subarray(0, 20), says: 'unreadable applied index' },
    { name: 'that is empty', value: Buffer.alloc(0), says: 'unreadable applied index' },
    { name: 'of the state before the first entry', value: encodeMeta(emptyMeta), says: 'do not match the state digest' },
    { name: 'that is missing', value: undefined, says: 'do not match the state digest' },
  ]) {
    it(`reports a meta record ${name} as damage`, () =>
      inTemporaryDirectory(async (directory) => {
        await writeOne(directory);
        const level = new Level<string, Buffer>(directory, { keyEncoding: 'utf8', valueEncoding: 'buffer' });
        await (value === undefined ? level.del(metaKey) : level.put(metaKey, value));
        await level.close();
        const error = await rejection(StateStore.open(directory));
        expect(error).to.be.instanceOf(StorageDamaged);
        expect(error).to.have.property('message').that.contains(says);
      }));
  }

  for (const { name, key, checksumOf } of [
    { name: 'not UTF-8', key: Buffer.of(0x61, 0xff), checksumOf: 'a' },
    { name: 'not UTF-8 but has the checksum of its decoded text', key: Buffer.of(0x61, 0xff), checksumOf: 'a\ufffd' },
    { name: 'not a valid name', key: Buffer.from('a//b'), checksumOf: 'a//b' },
  ])
    it(`reports a record whose key is ${name} as damage`, () =>
      inTemporaryDirectory(async (directory) => {
        await writeOne(directory);
        const level = new Level<Buffer, Buffer>(directory, { keyEncoding: 'buffer', valueEncoding: 'buffer' });
        await level.put(key, encodeRecord(checksumOf, record));
        await level.close();
        const error = await rejection(StateStore.open(directory));
        expect(error).to.be.instanceOf(StorageDamaged);
        expect(error).to.have.property('message').that.contains('an invalid name');
      }));

  it('reports a record as damage whose key decodes to a valid name but has different bytes', () =>
    inTemporaryDirectory(async (directory) => {
      const odd = { ...record, path: 'a/\ufffd' };
      const digest = recordDigest(odd);
      await withStore(directory, (store) => store.write(new Map([[odd.path, odd]]), { ...meta, digest }));
      const level = new Level<Buffer, Buffer>(directory, { keyEncoding: 'buffer', valueEncoding: 'buffer' });
      const value = await level.get(Buffer.from(odd.path));
      await level.del(Buffer.from(odd.path));
      await level.put(Buffer.of(0x61, 0x2f, 0xf3, 0xbf, 0xbd), value ?? Buffer.alloc(0));
      await level.close();
      expect(await rejection(StateStore.open(directory))).to.be.instanceOf(StorageDamaged);
    }));

  it('reports a missing CURRENT as damage instead of overwriting the data', () =>
    inTemporaryDirectory(async (directory) => {
      await writeOne(directory);
      await unlink(join(directory, 'CURRENT'));
      const before = await readdir(directory);
      expect(await rejection(StateStore.open(directory))).to.be.instanceOf(StorageDamaged);
      expect(await readdir(directory)).to.deep.equal(before);
    }));

  it('refuses all calls after its first write error, and reopens at a state that it had confirmed or just tried', () =>
    inTemporaryDirectory(async (directory) => {
      // A file size limit simulates a full disk that later has room again; only a separate process can have one.
      const program = fileURLToPath(new URL('state-store.full-disk.ts', import.meta.url));
      const { stdout, stderr } = spawnSync(
        'bash',
        ['-c', 'ulimit -S -f 64; exec "$@"', 'bash', process.execPath, program, directory],
        {
          encoding: 'utf8',
        },
      );
      expect(stderr).to.equal('');
      const { confirmed, failure, again, reading } = JSON.parse(stdout);
      expect(confirmed).to.be.above(0);
      expect(failure).to.contain(StorageFailed.name);
      expect([again, reading]).to.deep.equal([failure, failure]);
      const store = await StateStore.open(directory);
      expect(store.metaAtOpen.appliedIndex).to.be.within(confirmed, confirmed + 1);
      await store.close();
    }));
});

function newerMeta(): Buffer {
  const checked = encodeMeta(meta).subarray(0, -32);
  checked.writeUInt8(2);
  return Buffer.concat([checked, createHash('sha256').update(checked).digest()]);
}

function withWrongBit(bytes: Buffer): Buffer {
  bytes.writeUInt8(bytes.readUInt8(5) ^ 1, 5);
  return bytes;
}
