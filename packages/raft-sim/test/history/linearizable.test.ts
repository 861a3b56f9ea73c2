import { expect } from 'chai';
import fc from 'fast-check';
import { checkLinearizable } from '../../src/history/linearizable.ts';
import type { KeyKind } from '../../src/history/model.ts';
import type { Answer, Operation, Request } from '../../src/history/operation.ts';

const call = (request: Request, calledAt: number, at?: number, answer: Answer = 'done'): Operation =>
  at === undefined ? { request, calledAt } : { request, calledAt, returned: { at, answer } };
const write = (value: number, from: number, to?: number) => call({ kind: 'write', value }, from, to);
const append = (value: number, from: number, to?: number) => call({ kind: 'append', value }, from, to);
const read = (values: readonly number[], from: number, to: number) => call({ kind: 'read' }, from, to, { values });
const cas = (from: number, to: number, swapped: boolean, start: number, end: number) =>
  call({ kind: 'cas', from, to }, start, end, { swapped });
const verdict = (kind: KeyKind, history: readonly Operation[], stepsMax = 100_000) =>
  checkLinearizable(history, { kind, stepsMax });

describe('checkLinearizable', () => {
  for (const [name, kind, history] of [
    ['nothing', 'register', []],
    ['a read before any write', 'register', [read([0], 1, 2)]],
    ['a read after a write', 'register', [write(1, 1, 2), read([1], 3, 4)]],
    ['reads of the old and the new value during a write', 'register', [write(1, 1, 9), read([0], 2, 3), read([1], 4, 5)]],
    ['a write without an answer, seen later', 'register', [write(1, 1), read([0], 2, 3), read([1], 4, 5)]],
    ['a write without an answer that never happened', 'register', [write(1, 1), read([0], 2, 3), read([0], 4, 5)]],
    ['two writers, seen in one order', 'register', [write(1, 1, 9), write(2, 1, 9), read([2], 2, 3), read([1], 4, 5)]],
    ['one of two racing swaps', 'register', [cas(0, 1, true, 1, 5), cas(0, 2, false, 1, 5), read([1], 6, 7)]],
    ['appends in the order of the reads', 'list', [append(1, 1, 9), append(2, 1, 9), read([2], 2, 3), read([2, 1], 10, 11)]],
    ['a call and a return at one time', 'register', [write(1, 1, 3), read([0], 3, 4)]],
  ] as const) {
    it(`accepts ${name}`, () => {
      expect(verdict(kind, history)).to.equal('linearizable');
    });
  }

  for (const [name, kind, history] of [
    ['a stale read', 'register', [write(1, 1, 2), write(2, 3, 4), read([1], 5, 6)]],
    ['a stale read after a fresh one', 'register', [write(1, 1, 9), read([1], 2, 3), read([0], 4, 5)]],
    ['a lost write', 'list', [append(1, 1, 2), append(2, 3, 4), read([2], 5, 6)]],
    ['a lost write at the end', 'list', [append(1, 1, 2), read([], 3, 4)]],
    ['an entry applied twice', 'list', [append(1, 1, 2), read([1, 1], 3, 4)]],
    ['an entry with an unknown outcome, applied twice', 'list', [append(1, 1), read([1, 1], 3, 4)]],
    ['a read of a value that is written later', 'register', [read([1], 1, 2), write(1, 3, 4)]],
    ['a read of a value that nobody wrote', 'register', [write(1, 1, 2), read([7], 3, 4)]],
    ['two swaps from one value', 'register', [cas(0, 1, true, 1, 2), cas(0, 2, true, 3, 4)]],
    ['a refused swap that must have succeeded', 'register', [cas(0, 1, false, 1, 2), read([0], 3, 4)]],
    ['two orders seen by two readers', 'list', [append(1, 1, 9), append(2, 1, 9), read([1], 2, 3), read([2, 1], 10, 11)]],
  ] as const) {
    it(`refuses ${name}`, () => {
      expect(verdict(kind, history)).to.equal('violated');
    });
  }

  it('answers unknown, never a pass, when its budget ends first', () => {
    const history = Array.from({ length: 12 }, (_, i) => write(i + 1, 1, 100));
    expect(verdict('register', [...history, read([99], 101, 102)], 1000)).to.equal('unknown');
    expect(verdict('list', [append(1, 1, 2)], 0)).to.equal('unknown');
  });

  /** Runs requests one by one on a real value, each at some moment between its call and its return. */
  const played = (kind: KeyKind) =>
    fc
      .array(
        fc.record({
          choice: fc.nat(2),
          value: fc.integer({ min: 1, max: 4 }),
          early: fc.nat(6),
          late: fc.nat(6),
          lost: fc.nat(5),
        }),
        { maxLength: 25 },
      )
      .map((moves) => {
        let values: number[] = kind === 'list' ? [] : [0];
        return moves.map(({ choice, value, early, late, lost }, i): Operation => {
          const [calledAt, at] = [10 * i - 5 * early, 10 * i + 5 * late];
          if (choice === 0) return read([...values], calledAt, at);
          if (kind === 'list') {
            values = [...values, i];
            return append(i, calledAt, lost === 0 ? undefined : at);
          }
          if (choice === 1) {
            const swapped = values[0] === value;
            if (swapped) values = [value + 1];
            return cas(value, value + 1, swapped, calledAt, at);
          }
          values = [value];
          return write(value, calledAt, lost === 0 ? undefined : at);
        });
      });

  for (const kind of ['register', 'list'] as const) {
    it(`accepts every real history of a ${kind}`, () => {
      fc.assert(
        fc.property(played(kind), (history) => verdict(kind, history) === 'linearizable'),
        { numRuns: 300 },
      );
    });

    it(`agrees with a search of all orders of a ${kind}, also if an answer is wrong`, () => {
      fc.assert(
        fc.property(played(kind), fc.nat(5), fc.nat(4), (history, position, value) => {
          const short = history.slice(0, 6).map((operation, i) => {
            if (i !== position || operation.returned === undefined || operation.request.kind !== 'read') return operation;
            return { ...operation, returned: { ...operation.returned, answer: { values: [value] } } };
          });
          expect(verdict(kind, short)).to.equal(everyOrder(kind, short) ? 'linearizable' : 'violated');
        }),
        { numRuns: 500 },
      );
    });
  }
});

/** The definition: some order of some subset that contains all finished operations explains every answer. */
function everyOrder(kind: KeyKind, left: readonly Operation[], values: readonly number[] = kind === 'list' ? [] : [0]): boolean {
  if (left.every(({ returned }) => returned === undefined)) return true;
  const firstReturn = Math.min(...left.map(({ returned }) => returned?.at ?? Number.POSITIVE_INFINITY));
  return left.some((operation) => {
    if (operation.calledAt > firstReturn) return false;
    const after = played(operation, values);
    return (
      after !== undefined &&
      everyOrder(
        kind,
        left.filter((other) => other !== operation),
        after,
      )
    );
  });
}

function played({ request, returned }: Operation, values: readonly number[]): readonly number[] | undefined {
  const answer = returned?.answer;
  if (request.kind === 'write') return [request.value];
  if (request.kind === 'append') return [...values, request.value];
  if (request.kind === 'read') {
    if (typeof answer !== 'object' || !('values' in answer)) return values;
    return answer.values.join() === values.join() ? values : undefined;
  }
  const swaps = values[0] === request.from;
  if (typeof answer === 'object' && 'swapped' in answer && answer.swapped !== swaps) return undefined;
  return swaps ? [request.to] : values;
}
