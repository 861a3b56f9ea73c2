import { type KeyKind, type Step, stepOf, Values } from './model.ts';
import type { Operation } from './operation.ts';

/** `unknown`: the search exceeded its budget. This is not a success, so the caller must count these cases. */
export type Verdict = 'linearizable' | 'violated' | 'unknown';

/** A call or a return, in the list of the events that are not ordered yet. */
interface Event {
  readonly id: number;
  readonly step: Step;
  /** The return that belongs to a call; absent for an operation with an unknown outcome, and for a return. */
  ends: Event | undefined;
  readonly isCall: boolean;
  before: Event | undefined;
  after: Event | undefined;
}

/**
 * Checks whether one order of the operations explains all answers and keeps every operation between its call and its return (Herlihy, Wing:
 * Linearizability, 1990). The search is Wing and Gong's with Lowe's memo of (ordered operations, value) (Lowe: Testing for linearizability,
 * 2017). Its budget is in steps, not in time, so that a verdict is repeatable.
 */
export function checkLinearizable(
  history: readonly Operation[],
  { kind, stepsMax }: { readonly kind: KeyKind; readonly stepsMax: number },
): Verdict {
  const head = listOf(history, kind);
  let unfinished = history.filter(({ returned }) => returned !== undefined).length;
  const ordered = new Uint16Array((history.length >> 4) + 1);
  const seen = new Set<string>();
  const stack: { readonly call: Event; readonly value: number }[] = [];
  let value = 0;
  let steps = 0;
  let event = head.after;
  while (unfinished > 0) {
    steps += 1;
    if (steps > stepsMax) return 'unknown';
    const next = event?.isCall === true ? event.step.next(value) : undefined;
    if (event?.isCall === true && (next === undefined || !isNew(seen, ordered, event.id, next))) {
      event = event.after;
    } else if (event?.isCall === true && next !== undefined) {
      stack.push({ call: event, value });
      value = next;
      flip(ordered, event.id);
      if (lift(event)) unfinished -= 1;
      event = head.after;
    } else {
      // A return that no earlier choice explains: undo the last choice and try the next one.
      const last = stack.pop();
      if (last === undefined) return 'violated';
      value = last.value;
      flip(ordered, last.call.id);
      if (unlift(last.call)) unfinished += 1;
      event = last.call.after;
    }
  }
  return 'linearizable';
}

function listOf(history: readonly Operation[], kind: KeyKind): Event {
  const values = new Values(history);
  const nothing: Step = { next: () => undefined };
  const timed = history.flatMap(({ request, calledAt, returned }, id) => {
    const step = stepOf(values, kind, request, returned?.answer);
    const call: Event = { id, step, ends: undefined, isCall: true, before: undefined, after: undefined };
    if (returned === undefined) return [{ at: calledAt, event: call }];
    const end: Event = { id, step: nothing, ends: undefined, isCall: false, before: undefined, after: undefined };
    call.ends = end;
    return [
      { at: calledAt, event: call },
      { at: returned.at, event: end },
    ];
  });
  // If a call and a return are at the same time, the call comes first: they may have overlapped.
  timed.sort((a, b) => a.at - b.at || Number(b.event.isCall) - Number(a.event.isCall));
  const head: Event = { id: -1, step: nothing, ends: undefined, isCall: true, before: undefined, after: undefined };
  let last = head;
  for (const { event } of timed) {
    last.after = event;
    event.before = last;
    last = event;
  }
  return head;
}

/** Notes that these operations, and the one with this id, lead to this value; returns false if that was tried before. */
function isNew(seen: Set<string>, ordered: Uint16Array, id: number, value: number): boolean {
  flip(ordered, id);
  const key = `${value}:${String.fromCharCode(...ordered)}`;
  flip(ordered, id);
  if (seen.has(key)) return false;
  seen.add(key);
  return true;
}

function flip(ordered: Uint16Array, id: number): void {
  ordered[id >> 4] = (ordered[id >> 4] ?? 0) ^ (1 << (id & 15));
}

/** Removes a call and its return from the list; returns whether there was a return. */
function lift(call: Event): boolean {
  unlink(call);
  if (call.ends === undefined) return false;
  unlink(call.ends);
  return true;
}

function unlift(call: Event): boolean {
  if (call.ends !== undefined) relink(call.ends);
  relink(call);
  return call.ends !== undefined;
}

function unlink({ before, after }: Event): void {
  if (before !== undefined) before.after = after;
  if (after !== undefined) after.before = before;
}

function relink(event: Event): void {
  if (event.before !== undefined) event.before.after = event;
  if (event.after !== undefined) event.after.before = event;
}
