import { expect } from 'chai';
import fc from 'fast-check';
import { RecentRecords } from '../../src/log/recent-records.ts';

const kibibyte = 1024;

/** The written batches: for each its place and one repeated byte. */
interface Written {
  readonly segment: number;
  readonly offset: number;
  readonly bytes: number;
  readonly fill: number;
}

/** Adjacent batches, with a new segment now and then. */
function write(recent: RecentRecords, batches: readonly { readonly bytes: number; readonly rolls: boolean }[]): Written[] {
  let [segment, offset] = [1, 64];
  return batches.map(({ bytes, rolls }, i) => {
    if (rolls) [segment, offset] = [segment + 1, 64];
    const place = { segment, offset, bytes };
    recent.allocate(place).fill(i % 251);
    offset += bytes;
    return { ...place, fill: i % 251 };
  });
}

describe('RecentRecords', () => {
  const batch = fc.record({ bytes: fc.integer({ min: 1, max: 300 * kibibyte }), rolls: fc.boolean() });

  it('returns the bytes of the newest batches without gaps, within its limit', () => {
    fc.assert(
      fc.property(fc.array(batch, { maxLength: 40 }), fc.nat(2000 * kibibyte), (batches, bytesMax) => {
        const recent = new RecentRecords(bytesMax);
        const written = write(recent, batches);
        const held = written.map((place) => recent.at(place));
        for (const [i, { bytes, fill }] of written.entries()) {
          const found = held[i];
          if (found !== undefined) expect(found.equals(Buffer.alloc(bytes, fill))).to.equal(true);
        }
        const first = held.findIndex((found) => found !== undefined);
        if (first >= 0) expect(held.slice(first)).not.to.include(undefined);
        expect(held.reduce((sum, found) => sum + (found?.length ?? 0), 0)).to.be.at.most(bytesMax);
      }),
      { numRuns: 50 },
    );
  });

  it('fills at least half of its limit with small batches, which share memory', () => {
    const recent = new RecentRecords(1024 * kibibyte);
    const written = write(
      recent,
      Array.from({ length: 20_000 }, () => ({ bytes: 229, rolls: false })),
    );
    const held = written.flatMap((place) => recent.at(place) ?? []);
    expect(229 * held.length).to.be.at.least(512 * kibibyte);
    expect(new Set(held.map(({ buffer }) => buffer))).to.have.property('size', 4);
  });

  it('returns undefined for places that it does not cache', () => {
    const recent = new RecentRecords(1024 * kibibyte);
    write(recent, [{ bytes: 100, rolls: false }]);
    const places = [
      { segment: 1, offset: 0, bytes: 64 },
      { segment: 1, offset: 64, bytes: 101 },
      { segment: 1, offset: 164, bytes: 1 },
      { segment: 2, offset: 64, bytes: 100 },
    ];
    for (const place of places) expect(recent.at(place)).to.equal(undefined);
    expect(recent.at({ segment: 1, offset: 114, bytes: 50 })).to.have.length(50);
  });
});
