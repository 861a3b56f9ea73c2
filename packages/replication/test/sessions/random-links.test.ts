import { expect } from 'chai';
import fc from 'fast-check';
import { Link } from './memory-link.ts';
import { TestPrimary, TestSecondary, textsOf } from './session-fixtures.ts';

/** One step of a run. `lose`: the outcome of the next step of the secondary is unknown. `settle`: all frames arrive and are worked on. */
const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('deliver' as const), count: fc.integer({ min: 1, max: 6 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('write' as const),
      path: fc.integer({ min: 0, max: 9 }),
      bytes: fc.integer({ min: 0, max: 300 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom('tick' as const, 'progress' as const, 'work' as const, 'settle' as const) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('cut' as const, 'promote' as const, 'lose' as const) }) },
);

describe('the sessions of a primary and a secondary, in any order of events', () => {
  it('never apply a part of an entry or a state of another position, and end with equal records', async () => {
    const seen = { states: 0, welcomes: 0, behind: 0, epochs: 0, unknown: 0 };
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 200 }), async (steps) => {
        const primary = new TestPrimary({ bytesMax: 1_500, heldBytesMax: 1_000_000 });
        const secondary = new TestSecondary();
        /** The records of the primary at each position. */
        const history = new Map([[primary.index, textsOf(primary.records)]]);
        const note = (): void => void history.set(primary.index, textsOf(primary.records));
        const check = (): void => {
          const { index = 0, epochs = [] } = secondary.current ?? {};
          if (epochs.length > 0) expect(textsOf(secondary.records), `position ${index}`).to.deep.equal(history.get(index));
        };
        let isLosing = false;
        secondary.commit = async () => {
          if (!isLosing) return 'committed';
          isLosing = false;
          seen.unknown++;
          return 'unknown';
        };
        let link = new Link(primary, secondary);
        const reconnect = (): void => {
          if (link.ends['primary']?.why === 'behind') seen.behind++;
          seen.states += link.seen.filter((kind) => kind === '>state').length;
          seen.welcomes += link.seen.filter((kind) => kind === '>welcome').length;
          link.cut();
          link = new Link(primary, secondary);
        };
        const work = () => new Promise<void>((resolve) => setImmediate(resolve));
        for (const one of steps) {
          if (one.kind === 'deliver') for (let at = 0; at < one.count; at++) link.deliver();
          else if (one.kind === 'write') {
            primary.write(`transit/key-${one.path}`, 'x'.repeat(one.bytes));
            note();
          } else if (one.kind === 'tick') {
            link.nowMs += 250;
            link.primary.tick();
            link.secondary.tick();
          } else if (one.kind === 'progress') link.primary.progress();
          else if (one.kind === 'work') await work();
          else if (one.kind === 'settle')
            for (let round = 0; round < 20; round++) {
              while (link.deliver());
              await work();
            }
          else if (one.kind === 'lose') isLosing = true;
          else if (one.kind === 'promote' && primary.current !== undefined) {
            seen.epochs++;
            const { epochs, seen: number } = primary.current;
            const epoch = { number: number + 1, id: `${number}`.padStart(2, '0').repeat(16), start: primary.index };
            primary.current = { ...primary.current, seen: number + 1, epochs: [...epochs, epoch].slice(-16) };
            primary.write('transit/promoted', epoch.id);
            note();
          } else reconnect();
          if (Object.keys(link.ends).length > 0) reconnect();
          for (const end of Object.values(link.ends))
            expect(end.why, 'no side misunderstands the other').not.to.equal('unexpected_frame');
          check();
        }
        for (let round = 0; round < 2_000 && secondary.current?.index !== primary.index; round++) {
          if (Object.keys(link.ends).length > 0) reconnect();
          link.nowMs += 10;
          link.primary.tick();
          while (link.deliver());
          await work();
          check();
        }
        expect(textsOf(secondary.records)).to.deep.equal(textsOf(primary.records));
        expect(secondary.current?.index).to.equal(primary.index);
        reconnect();
        link.cut();
        await work();
        expect(primary.openReaders).to.equal(0);
      }),
      { numRuns: 150 },
    );
    for (const [what, count] of Object.entries(seen)) expect(count, what).to.be.above(0);
  });
});
