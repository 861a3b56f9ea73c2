import { expect } from 'chai';
import fc from 'fast-check';
import { WatchRevisions } from '../../src/copy/watch-revisions.ts';
import type { EtcdEvent } from '../../src/etcd.ts';

const event = (modRevision: number, key: string): EtcdEvent => ({
  deleted: false,
  row: { key, value: Buffer.alloc(0), createRevision: modRevision, modRevision, version: 1 },
});

/** Messages of one or more revisions each, in ascending order. */
const messages = fc
  .array(fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 4 })), { minLength: 1, maxLength: 3 }), {
    maxLength: 5,
  })
  .map((all) => {
    let revision = 5;
    return all.map((message) =>
      message.flatMap(([step, keys]) => {
        revision += step;
        return Array.from({ length: keys }, (_, i) => event(revision, `k${i}`));
      }),
    );
  });

describe('revisions of a watch', () => {
  it('are the same however etcd fragments its messages', () => {
    fc.assert(
      fc.property(messages, fc.infiniteStream(fc.integer({ min: 1, max: 3 })), (all, sizes) => {
        const whole = new WatchRevisions(1);
        const fragmented = new WatchRevisions(1);
        for (const events of all) {
          const expected = whole.take({ fragment: false, events });
          const received: unknown[] = [];
          for (let at = 0; at < events.length; ) {
            const size = sizes.next().value ?? 1;
            const complete = fragmented.take({ fragment: at + size < events.length, events: events.slice(at, at + size) });
            received.push(...complete);
            at += size;
          }
          expect(received).to.deep.equal(expected);
        }
      }),
    );
  });

  it('hold all events of a revision, and arrive once the next one begins or the last fragment has come', () => {
    const revisions = new WatchRevisions(7);
    expect(revisions.take({ fragment: true, events: [event(7, 'a')] })).to.deep.equal([]);
    expect(revisions.take({ fragment: true, events: [event(7, 'b'), event(8, 'a')] })).to.deep.equal([
      { revision: 7, events: [event(7, 'a'), event(7, 'b')] },
    ]);
    expect(revisions.take({ fragment: true, events: [] })).to.deep.equal([]);
    expect(revisions.take({ fragment: false, events: [event(8, 'b')] })).to.deep.equal([
      { revision: 8, events: [event(8, 'a'), event(8, 'b')] },
    ]);
  });

  for (const { name, events } of [
    { name: 'below the start', events: [event(6, 'a')] },
    { name: 'a second time', events: [event(7, 'a'), event(8, 'a'), event(7, 'b')] },
  ])
    it(`are disordered if one comes ${name}`, () => {
      expect(new WatchRevisions(7).take({ fragment: false, events })).to.equal('disordered');
    });
});
