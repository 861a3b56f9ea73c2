import type { StatsFs } from 'node:fs';
import { expect } from 'chai';
import { DataDisk } from '../../src/reports/data-disk.ts';

const stats = { blocks: 100, bfree: 40, bavail: 30, bsize: 4096 } as StatsFs;
const space = { totalBytes: 100 * 4096, freeBytes: 40 * 4096, availableBytes: 30 * 4096 };

/** A file system that answers when the test says so. */
function slowDisk() {
  const calls: PromiseWithResolvers<StatsFs>[] = [];
  const ask = (): Promise<StatsFs> => {
    const call = Promise.withResolvers<StatsFs>();
    calls.push(call);
    return call.promise;
  };
  return { disk: new DataDisk('/data', ask), calls };
}

describe('the space of the data disk', () => {
  it('is read with one call for all who ask meanwhile', async () => {
    const { disk, calls } = slowDisk();
    const asked = [disk.space(60_000), disk.space(60_000)];
    calls[0]?.resolve(stats);
    expect(await Promise.all(asked)).to.deep.equal([space, space]);
    expect(calls).to.have.lengthOf(1);
  });

  it('is unknown while the disk hangs, which holds one call however often it is asked, and known again later', async () => {
    const { disk, calls } = slowDisk();
    for (let round = 0; round < 5; round++) expect(await disk.space(1)).to.equal(undefined);
    expect(calls).to.have.lengthOf(1);
    calls[0]?.resolve(stats);
    await calls[0]?.promise;
    const again = disk.space(60_000);
    calls[1]?.resolve(stats);
    expect(await again).to.deep.equal(space);
  });

  it('is unknown where the file system fails', async () => {
    const { disk, calls } = slowDisk();
    const asked = disk.space(60_000);
    calls[0]?.reject(new Error('EIO'));
    expect(await asked).to.equal(undefined);
  });
});
