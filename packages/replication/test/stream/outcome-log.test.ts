import { expect } from 'chai';
import fc from 'fast-check';
import type { Outcome } from '../../src/stream/outcome.ts';
import { OutcomeLog } from '../../src/stream/outcome-log.ts';

const outcome = (from: number, to: number, writes: readonly [path: string, value: string | null][] = []): Outcome => ({
  ...{ from, to, valuesWritten: writes.length },
  writes: writes.map(([path, value]) => ({ path, value: value === null ? null : Buffer.from(value), revision: to })),
});
const logOf = (...outcomes: readonly Outcome[]): OutcomeLog => {
  const log = new OutcomeLog({ bytesMax: 1_000_000, heldBytesMax: 1_000_000 });
  for (const each of outcomes) log.note({ kind: 'outcome', outcome: each });
  return log;
};

describe('OutcomeLog', () => {
  it('joins outcomes, each path once, with its last write', () => {
    const log = logOf(
      outcome(4, 5, [
        ['a', '1'],
        ['b', '1'],
      ]),
      outcome(5, 6),
      outcome(6, 9, [['a', null]]),
    ); // prettier-ignore
    const joined = log.after(4, 1_000_000);
    expect(joined).to.include({ from: 4, to: 9, valuesWritten: 3 });
    expect(joined?.writes.map(({ path, value, revision }) => [path, value === null, revision])).to.have.deep.members([
      ['a', true, 9],
      ['b', false, 5],
    ]);
    expect(log.after(9, 1_000_000), 'nothing is newer').to.equal(undefined);
    expect([4, 5, 6, 7, 8, 9, 10].map((index) => log.continuesFrom(index))).to.deep.equal([
      true,
      true,
      true,
      false,
      false,
      true,
      false,
    ]);
  });

  it('never joins two changes of the keyring, because the second one may need the keys of the first', () => {
    const log = logOf(
      outcome(1, 2, [['a', '1']]),
      outcome(2, 3, [['core/keyring', 'rotated']]),
      outcome(3, 4, [['a', '2']]),
      outcome(4, 5, [['core/keyring', 'rekeyed']]),
      outcome(5, 6, [['a', '3']]),
    );
    const frames = [log.after(1, 1_000), log.after(4, 1_000)];
    expect(frames.map((frame) => [frame?.from, frame?.to])).to.deep.equal([
      [1, 4],
      [4, 6],
    ]);
  });

  it('forgets everything at a gap and at a restart', () => {
    const log = logOf(outcome(4, 5), outcome(6, 7));
    expect([4, 5, 6, 7].map((index) => log.continuesFrom(index))).to.deep.equal([false, false, true, true]);
    log.note({ kind: 'restart', at: 7 });
    expect(log.continuesFrom(6)).to.equal(false);
    expect(log.continuesFrom(7), 'the state at 7 is whole').to.equal(true);
  });

  it('keeps within its memory, and never returns outcomes with a hole', () => {
    const someSizes = fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 40 });
    fc.assert(
      fc.property(someSizes, fc.integer({ min: 1, max: 2_000 }), (sizes, frameBytes) => {
        const log = new OutcomeLog({ bytesMax: 3_000, heldBytesMax: 3_000 });
        for (const [at, size] of sizes.entries()) {
          const writes: [string, string][] = size === 0 ? [] : [[`p${at}`, 'x'.repeat(size)]];
          log.note({ kind: 'outcome', outcome: outcome(at, at + 1, writes) });
        }
        for (let from = 0; from < sizes.length; from++) {
          if (!log.continuesFrom(from)) continue;
          const seen: string[] = [];
          let at = from;
          for (let next = log.after(at, frameBytes); next !== undefined; next = log.after(at, frameBytes)) {
            expect(next.from).to.equal(at);
            expect(next.to).to.be.greaterThan(at);
            seen.push(...next.writes.map(({ path }) => path));
            at = next.to;
          }
          expect(at).to.equal(sizes.length);
          expect(seen).to.deep.equal(sizes.flatMap((size, each) => (each >= from && size > 0 ? [`p${each}`] : [])));
        }
        const kept = sizes.filter((_, from) => log.continuesFrom(from)).reduce((sum, size) => sum + size, 0);
        expect(kept).to.be.at.most(3_000);
      }),
    );
  });

  it('keeps held outcomes until they are released, or take too much memory', () => {
    const log = new OutcomeLog({ bytesMax: 2_000, heldBytesMax: 6_000 });
    const noteUpTo = (last: number): void => {
      for (let at = log.last ?? 0; at < last; at++)
        log.note({ kind: 'outcome', outcome: outcome(at, at + 1, [['p', 'x'.repeat(679)]]) });
    };
    noteUpTo(2);
    expect(log.continuesFrom(0)).to.equal(true);
    const hold = log.hold(0);
    noteUpTo(5);
    expect(log.continuesFrom(0), 'held').to.equal(true);
    hold.advance(1);
    noteUpTo(6);
    expect([0, 1].map((index) => log.continuesFrom(index))).to.deep.equal([false, true]);
    noteUpTo(9);
    expect([1, 2, 3].map((index) => log.continuesFrom(index))).to.deep.equal([false, false, true]);
    hold.release();
    expect([3, 6, 7].map((index) => log.continuesFrom(index))).to.deep.equal([false, false, true]);
  });

  it('copies values, which are views of log entries', () => {
    const log = new OutcomeLog({ bytesMax: 2_000, heldBytesMax: 2_000 });
    const value = Buffer.from('value');
    log.note({ kind: 'outcome', outcome: { from: 0, to: 1, valuesWritten: 1, writes: [{ path: 'p', value, revision: 1 }] } });
    value.fill(0);
    expect(Buffer.from(log.after(0, 100)?.writes[0]?.value ?? []).toString()).to.equal('value');
  });
});
