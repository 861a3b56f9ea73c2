import { createHash } from 'node:crypto';
import { comparePaths } from '@transitd/storage-fsm';
import { expect } from 'chai';
import fc from 'fast-check';
import { EtcdError, type EtcdRangeRequest } from '../../src/etcd.ts';
import { endOfBeginning, pagesOf } from '../../src/replica/pages.ts';

interface Walked {
  /** Bytes of the value of a key; otherwise values are empty. */
  readonly sizeOf?: (key: string) => number;
  /** Fails before an answer is given, as the client does for one that is too large. */
  readonly check?: (bytes: number, keys: readonly string[]) => void;
}

/** An etcd with these keys, which counts the keys that it walks through. */
function walked(keys: readonly string[], { sizeOf = () => 0, check = () => undefined }: Walked = {}) {
  const sorted = [...new Set(keys)].sort(comparePaths);
  const counts = { walked: 0, requests: 0 };
  const range = async ({ key, end = '', limit = 0, revision = 7 }: EtcdRangeRequest) => {
    const [from, to] = [placeOf(sorted, key), placeOf(sorted, end)];
    counts.walked += to - from;
    counts.requests += 1;
    const rows = sorted
      .slice(from, Math.min(to, from + limit))
      .map((one) => ({ key: one, value: blank.subarray(0, sizeOf(one)), ...unused }));
    check(
      rows.reduce((sum, { value }) => sum + value.length, 0),
      rows.map((row) => row.key),
    );
    return { revision, rows, more: to - from > limit };
  };
  return { etcd: { range }, sorted, counts };
}

/** Returns how many of the sorted keys come before this one. */
function placeOf(sorted: readonly string[], key: string): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (comparePaths(sorted[middle] ?? '', key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

const mebibyte = 1024 * 1024;
const blank = new Uint8Array(mebibyte);
const unused = { createRevision: 1, modRevision: 1, version: 1 };
const all = { key: 'p/', end: 'p0', isPinned: true };

async function keysOf({ etcd }: Pick<ReturnType<typeof walked>, 'etcd'>, limit: number): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { rows } of pagesOf(etcd, { ...all, limit })) found.push(...rows.map(({ key }) => key));
  return found;
}

describe('the pages of a range', () => {
  const character = fc.constantFrom(
    '0',
    '1',
    '/',
    'z',
    '~',
    '\u007f',
    'ü',
    '\ud7ff',
    '\ue000',
    '\uffff',
    '\u{10000}',
    '\u{10ffff}',
  );
  const key = fc.array(character, { maxLength: 6 }).map((characters) => `p/${characters.join('')}`);

  it('have each key once and in order, whatever the keys are', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(key, { maxLength: 200 }), fc.integer({ min: 1, max: 50 }), async (keys, limit) => {
        const state = walked(keys);
        expect(await keysOf(state, limit)).to.deep.equal(state.sorted);
      }),
      { numRuns: 200 },
    );
  });

  it('end after a beginning with the next key that does not begin so', () => {
    fc.assert(
      fc.property(key, key, fc.nat({ max: 8 }), (one, other, length) => {
        const until = endOfBeginning(one, length, all.end);
        const beginning = [...one].slice(0, length).join('');
        expect(comparePaths(one, until)).to.be.below(0);
        if (other.startsWith(beginning)) expect(comparePaths(other, until)).to.be.below(0);
        expect(comparePaths(until, all.end)).to.be.at.most(0);
      }),
    );
  });

  for (const { what, keyOf } of [
    { what: 'names that count up', keyOf: (number: number) => `p/r/transit/m/key/name-${String(number).padStart(8, '0')}` },
    {
      what: 'random ids',
      keyOf: (number: number) => `p/r/transit/m/ver/${createHash('sha256').update(String(number)).digest('hex')}/1`,
    },
    { what: 'few keys in many mounts', keyOf: (number: number) => `p/r/transit/${(number * 7919) % 500}/key/${number}` },
  ])
    it(`make etcd walk through a few times as many keys as there are, for ${what}`, async () => {
      const state = walked(Array.from({ length: 5000 }, (_, number) => keyOf(number)));
      expect(await keysOf(state, 20)).to.have.length(5000);
      const wholeRanges = (5000 / 20) * (5000 / 2);
      expect(state.counts.walked).to.be.below(wholeRanges / 6);
      expect(state.counts.requests).to.be.below((5 * 5000) / 20);
    });

  const limited = (bytes: number): void => {
    if (bytes > 4 * mebibyte) throw new EtcdError('too_large', 'the answer is too large');
  };
  /** Names that count up, with the sizes of their values. */
  const sized = (sizes: readonly number[]): ReadonlyMap<string, number> =>
    new Map(sizes.map((size, number) => [`p/${String(number).padStart(4, '0')}`, size]));
  const sizes = (length: number, sizeAt: (index: number) => number): number[] => Array.from({ length }, (_, i) => sizeAt(i));

  for (const { what, of, requestsMax } of [
    { what: 'all are large', of: sizes(200, () => mebibyte), requestsMax: 250 },
    { what: 'many small ones come before the large ones', of: sizes(3000, (i) => (i < 2900 ? 300 : mebibyte)), requestsMax: 200 },
    { what: 'few among many small ones are large', of: sizes(3000, (i) => (i % 300 ? 300 : mebibyte)), requestsMax: 50 },
    { what: 'every other one is large', of: sizes(300, (i) => (i % 2 ? 0 : mebibyte)), requestsMax: 300 },
  ])
    it(`have fewer rows the larger the records are: ${what}`, async () => {
      const records = sized(of);
      const state = walked([...records.keys()], { sizeOf: (key) => records.get(key) ?? 0, check: limited });
      expect(await keysOf(state, 250)).to.deep.equal(state.sorted);
      expect(state.counts.requests).to.be.below(requestsMax);
    });

  it('end at a row that is too large for an answer, and say where it is', async () => {
    const records = sized([1, 2, 5 * mebibyte]);
    const state = walked([...records.keys()], {
      check: (_, keys) => limited(Math.max(...keys.map((key) => records.get(key) ?? 0))),
    });
    const error = await keysOf(state, 250).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(EtcdError);
    expect(error).to.include({
      kind: 'too_large',
      message: 'the first key from "p/0001\\u0000" on is too large: the answer is too large',
    });
  });

  it('are read with one row where etcd does not answer more in time, and end at a row that does not arrive', async () => {
    const check = (_: number, { length }: readonly string[]): void => {
      if (length > rowsInTime) throw new EtcdError('unknown', 'the deadline of the call is over');
    };
    let rowsInTime = 1;
    const state = walked([...sized(sizes(40, () => 1000)).keys()], { check });
    expect(await keysOf(state, 250)).to.deep.equal(state.sorted);
    rowsInTime = 0;
    expect(await keysOf(state, 250).catch((error: EtcdError) => error.kind)).to.equal('unknown');
  });

  it('are all as of the revision of the first one, if that is wanted, although others write meanwhile', async () => {
    const { etcd } = walked(['p/a', 'p/b', 'p/c']);
    for (const isPinned of [true, false]) {
      const asked: (number | undefined)[] = [];
      const range = async (request: EtcdRangeRequest) => {
        asked.push(request.revision);
        return { ...(await etcd.range(request)), revision: 6 + asked.length }; // etcd answers with its present revision
      };
      for await (const { rows } of pagesOf({ range }, { ...all, isPinned, limit: 1 })) expect(rows.length).to.be.at.most(1);
      expect(asked.length).to.be.above(2);
      expect(new Set(asked.slice(1))).to.deep.equal(new Set([isPinned ? 7 : undefined]));
    }
  });
});
