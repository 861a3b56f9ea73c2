import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { Level } from 'level';
import { allBlocksGood } from '../../../src/state/leveldb/tables.ts';
import { inTemporaryDirectory } from '../../directory/temporary-directory.ts';

/** Returns a table of several data blocks, as LevelDB writes it when it reopens a database. */
const makeTable = (): Promise<Buffer> =>
  inTemporaryDirectory(async (directory) => {
    const first = new Level(directory, { compression: false });
    for (let i = 0; i < 200; i++) await first.put(`key/${i}`, `value ${i} `.repeat(10));
    await first.close();
    const second = new Level(directory, { compression: false });
    await second.open();
    await second.close();
    const name = readdirSync(directory).find((file) => file.endsWith('.ldb'));
    return readFileSync(join(directory, String(name)));
  });

describe('allBlocksGood', () => {
  const footerBytes = 48;
  let table: Buffer;
  before(async () => {
    table = await makeTable();
  });

  it('accepts a table as LevelDB wrote it', () => {
    expect(table.length).to.be.above(5 * 4096);
    expect(allBlocksGood(table)).to.equal(true);
  });

  it('detects a flipped bit in any block: data, Bloom filter, metaindex, index', () => {
    for (let at = 0; at < table.length - footerBytes; at += 3) {
      const bad = Buffer.from(table);
      bad.writeUInt8(bad.readUInt8(at) ^ (1 << (at % 8)), at);
      expect(allBlocksGood(bad), `byte ${at}`).to.equal(false);
    }
  });

  it('detects a truncated table, and a footer that points elsewhere', () => {
    expect(allBlocksGood(table.subarray(0, -1))).to.equal(false);
    expect(allBlocksGood(Buffer.alloc(0))).to.equal(false);
    const good = new Set<number>();
    for (let at = table.length - footerBytes; at < table.length; at++) {
      const bad = Buffer.from(table);
      bad.writeUInt8(bad.readUInt8(at) ^ 0x7f, at);
      if (allBlocksGood(bad)) good.add(at - table.length);
    }
    expect(Math.min(...good), 'only the padding between handles and magic may change').to.be.above(-footerBytes + 4);
    expect(Math.max(...good)).to.be.below(-8);
  });
});
