import { access, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  belowReserve,
  DiskReserve,
  type DiskReserveOptions,
  type DiskSpace,
  isCapped,
} from '../../src/directory/disk-reserve.ts';
import { inTemporaryDirectory } from './temporary-directory.ts';

const gibibyte = 1024 ** 3;

describe('belowReserve', () => {
  for (const { free, total, low, because } of [
    { free: 0.4, total: 100, low: true, because: '512 MiB is less than 5% of 100 GiB' },
    { free: 0.6, total: 100, low: false, because: '512 MiB is enough on a large disk' },
    { free: 0.1, total: 4, low: true, because: '5% of 4 GiB is about 0.2 GiB' },
    { free: 0.3, total: 4, low: false, because: '5% is enough on a small disk' },
  ])
    it(`${free} GiB of ${total} is ${low ? 'low' : 'enough'}: ${because}`, () => {
      expect(belowReserve({ freeBytes: free * gibibyte, totalBytes: total * gibibyte })).to.equal(low);
    });
});

describe('belowReserve, on a small disk', () => {
  const mebibyte = 1024 ** 2;
  for (const { free, low } of [
    { free: 47, low: true },
    { free: 48, low: false },
  ])
    it(`${free} MiB of 200 is ${low ? 'low' : 'enough'}: log and state may grow by more than 5% of it at once`, () => {
      expect(belowReserve({ freeBytes: free * mebibyte, totalBytes: 200 * mebibyte })).to.equal(low);
      const asked = { reserveBytes: 1 };
      expect(belowReserve({ freeBytes: free * mebibyte, totalBytes: 200 * mebibyte }, asked), 'whatever is asked for').to.equal(
        low,
      );
    });
});

it('a reserve of more than 5% of the disk is capped, and the default one is meant so', () => {
  for (const [reserveBytes, capped] of [
    [5 * gibibyte, false],
    [5 * gibibyte + 1, true],
    [0, false],
  ] as const)
    expect(isCapped(100 * gibibyte, reserveBytes), `${reserveBytes}`).to.equal(capped);
  expect(isCapped(gibibyte, gibibyte / 2)).to.equal(false);
});

it('a disk reserve of 0 disables the reserve', () => {
  expect(belowReserve({ freeBytes: 0, totalBytes: 1e9 }, { reserveBytes: 0 })).to.equal(false);
});

describe('DiskReserve', () => {
  let space: DiskSpace | Error;
  let sample: () => void;
  let measured: () => void;
  const options: DiskReserveOptions = {
    reserveBytes: 1000,
    reserveShare: 1,
    growthBytes: 0,
    ballastBytes: 3000,
    every: (_, task) => {
      sample = task;
      return () => undefined;
    },
    measure: async () => {
      setImmediate(() => measured());
      if (space instanceof Error) throw space;
      return space;
    },
  };
  const nextSample = async () => {
    const done = new Promise<void>((resolve) => {
      measured = resolve;
    });
    sample();
    await done;
  };
  const ballastIn = (directory: string) => join(directory, 'ballast');
  const exists = (path: string) =>
    access(path).then(
      () => true,
      () => false,
    );

  beforeEach(() => {
    measured = () => undefined;
    space = { freeBytes: 1e6, totalBytes: 1e6 };
  });

  it('updates with every sample of the free space', () =>
    inTemporaryDirectory(async (directory) => {
      const reserve = await DiskReserve.start(directory, options);
      expect(reserve.diskLow()).to.equal(false);
      space = { freeBytes: 999, totalBytes: 1e6 };
      expect(reserve.diskLow()).to.equal(false);
      await nextSample();
      expect(reserve.diskLow()).to.equal(true);
      space = { freeBytes: 1000, totalBytes: 1e6 };
      await nextSample();
      expect(reserve.diskLow()).to.equal(false);
      await reserve.stop();
    }));

  it("has room for a leader's entries down to half of growthBytes", () =>
    inTemporaryDirectory(async (directory) => {
      const reserve = await DiskReserve.start(directory, { ...options, growthBytes: 4000 });
      for (const { freeBytes, low, room } of [
        { freeBytes: 4000, low: false, room: true },
        { freeBytes: 3999, low: true, room: true },
        { freeBytes: 1999, low: true, room: false },
        { freeBytes: 2000, low: true, room: true },
      ]) {
        space = { freeBytes, totalBytes: 1e6 };
        await nextSample();
        expect({ freeBytes, low: reserve.diskLow(), room: reserve.hasRoom() }).to.deep.equal({ freeBytes, low, room });
      }
      await reserve.stop();
    }));

  it('counts a disk as low when its free space cannot be read', () =>
    inTemporaryDirectory(async (directory) => {
      space = new Error('EIO');
      const reserve = await DiskReserve.start(directory, options);
      expect(reserve.diskLow()).to.equal(true);
      await reserve.stop();
    }));

  it('measures the real disk by default', () =>
    inTemporaryDirectory(async (directory) => {
      const reserve = await DiskReserve.start(directory, { reserveBytes: 1, ballastBytes: 0 });
      expect(reserve.diskLow()).to.equal(false);
      await reserve.stop();
    }));

  it('creates the ballast file once, readable by its owner only', () =>
    inTemporaryDirectory(async (directory) => {
      const reserve = await DiskReserve.start(directory, options);
      await reserve.stop();
      const { size, mode } = await stat(ballastIn(directory));
      expect(size).to.equal(3000);
      expect(mode & 0o777).to.equal(0o600);
      await rm(ballastIn(directory));
      await nextSample();
      await reserve.stop();
      expect(await exists(ballastIn(directory))).to.equal(false);
    }));

  it('creates no ballast file if that would make the disk low', () =>
    inTemporaryDirectory(async (directory) => {
      space = { freeBytes: 3500, totalBytes: 1e6 };
      const reserve = await DiskReserve.start(directory, options);
      await reserve.stop();
      expect(reserve.diskLow()).to.equal(false);
      expect(await exists(ballastIn(directory))).to.equal(false);
    }));
});
