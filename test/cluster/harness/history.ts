// Records the calls of clients and their results, key by key, and translates them for the linearizability checker.
import { checkLinearizable, type Operation, type Verdict, withSeenEffects } from '@transitd/raft-sim';

/**
 * A `setting` is a number that clients store in a key. Every call stores a different number; 0 means that the key does not exist.
 * A `counter` is the latest version of a key that clients only rotate.
 */
export type KeyKind = 'setting' | 'counter';

export type Asked =
  | { readonly kind: 'create'; readonly value: number }
  | { readonly kind: 'set'; readonly value: number }
  | { readonly kind: 'delete' }
  | { readonly kind: 'rotate' }
  | { readonly kind: 'read' };

/** One call. Without `heard` it is unknown whether it took effect. */
export interface Call {
  readonly key: string;
  readonly asked: Asked;
  /** Positions in the single order of all calls and returns that this process saw. */
  readonly calledAt: number;
  /** The node that was called, for a person who reads the history. */
  readonly via: string;
  heard?: { readonly at: number; readonly value: number };
}

/** Maximum number of steps in the search for a valid order of one key's calls. */
const stepsMax = 2_000_000;

/** Records the calls of all clients of a run. Refused calls had no effect and are left out. */
export class History {
  readonly #calls = new Map<string, { readonly kind: KeyKind; readonly calls: Set<Call> }>();
  #clock = 0;

  begin(key: string, kind: KeyKind, asked: Asked, via = ''): Call {
    this.#clock += 1;
    const call: Call = { key, asked, calledAt: this.#clock, via };
    const known = this.#calls.get(key) ?? { kind, calls: new Set() };
    this.#calls.set(key, known);
    known.calls.add(call);
    return call;
  }

  /** @param value - the key's number after the call; 0 if it does not exist */
  returned(call: Call, value: number): void {
    this.#clock += 1;
    call.heard = { at: this.#clock, value };
  }

  /** Drops a call that certainly had no effect, or a read without information. */
  refused(call: Call): void {
    this.#calls.get(call.key)?.calls.delete(call);
  }

  /** The highest version whose rotation has been acknowledged so far: no answer may be older. */
  floor(key: string): number {
    let floor = 0;
    for (const { asked, heard } of this.#calls.get(key)?.calls ?? [])
      if (asked.kind === 'rotate' && heard !== undefined) floor = Math.max(floor, heard.value);
    return floor;
  }

  get keys(): readonly string[] {
    return [...this.#calls.keys()];
  }

  get size(): number {
    return this.keys.reduce((total, key) => total + this.callsOf(key).length, 0);
  }

  callsOf(key: string): readonly Call[] {
    return [...(this.#calls.get(key)?.calls ?? [])];
  }

  /** Returns whether one order explains every answer for this key. */
  verdict(key: string): Verdict {
    const known = this.#calls.get(key);
    if (known === undefined) return 'linearizable';
    const calls = [...known.calls];
    const operations = known.kind === 'setting' ? settingOperations(calls) : counterOperations(calls);
    return checkLinearizable(operations, { kind: 'register', stepsMax });
  }

  /** Returns the keys whose histories have no valid order, or none that was found. */
  verdicts(): ReadonlyMap<string, Exclude<Verdict, 'linearizable'>> {
    const bad = new Map<string, Exclude<Verdict, 'linearizable'>>();
    for (const key of this.#calls.keys()) {
      const verdict = this.verdict(key);
      if (verdict !== 'linearizable') bad.set(key, verdict);
    }
    return bad;
  }

  /** Returns the history of a key as text for a reader, one line for each call. */
  text(key: string): string {
    return this.callsOf(key)
      .map(({ asked, calledAt, heard, via }) => {
        const what = 'value' in asked ? `${asked.kind} ${asked.value}` : asked.kind;
        return `${calledAt}–${heard?.at ?? '?'} ${what} → ${heard?.value ?? 'unknown'} (${via})`;
      })
      .join('\n');
  }
}

function settingOperations(calls: readonly Call[]): readonly Operation[] {
  const operations = calls.flatMap((call) => settingOperation(call) ?? []);
  const seen = withSeenEffects(operations);
  // Every delete writes 0, so a read of 0 does not identify the delete.
  const isDelete = ({ request }: Operation): boolean => request.kind === 'write' && request.value === 0;
  return operations.map((operation, index) => (isDelete(operation) ? operation : (seen[index] ?? operation)));
}

/**
 * A setting as a register. A create swaps 0 for a value, a delete writes 0; a call that returns the unchanged key was a read.
 * @returns undefined for a call without information
 */
function settingOperation({ asked, calledAt, heard }: Call): Operation | undefined {
  const done = heard === undefined ? {} : { returned: { at: heard.at, answer: 'done' as const } };
  if (asked.kind === 'delete') return { request: { kind: 'write', value: 0 }, calledAt, ...done };
  const value = asked.kind === 'create' || asked.kind === 'set' ? asked.value : undefined;
  if (heard !== undefined && heard.value !== value)
    return { request: { kind: 'read' }, calledAt, returned: { at: heard.at, answer: { values: [heard.value] } } };
  if (value === undefined) return undefined;
  if (asked.kind === 'set') return { request: { kind: 'write', value }, calledAt, ...done };
  const swapped = heard === undefined ? {} : { returned: { at: heard.at, answer: { swapped: true } } };
  return { request: { kind: 'cas', from: 0, to: value }, calledAt, ...swapped };
}

/**
 * A counter as a register that each rotation swaps from one version to the next. A version that somebody read but no rotation
 * returned comes from a rotation without an answer. The earliest unanswered calls get the lowest of these versions,
 * which allows every order that any other assignment allows. If calls remain, nobody read their effect. If a version remains, no call
 * created it, so no order explains it.
 */
function counterOperations(calls: readonly Call[]): readonly Operation[] {
  const rotations = calls.filter(({ asked }) => asked.kind === 'rotate');
  const answered = new Set(rotations.flatMap(({ heard }) => (heard === undefined ? [] : [heard.value])));
  const highest = calls.reduce((max, { heard }) => Math.max(max, heard?.value ?? 0), 1);
  const open = rotations.filter(({ heard }) => heard === undefined).toSorted((a, b) => a.calledAt - b.calledAt);
  const versionOf = new Map<Call, number>();
  for (let version = 2; version <= highest; version++) {
    if (answered.has(version)) continue;
    const call = open.shift();
    if (call !== undefined) versionOf.set(call, version);
  }
  const first: Operation = { request: { kind: 'write', value: 1 }, calledAt: 0, returned: { at: 0, answer: 'done' } };
  const operations = calls.flatMap((call): Operation[] => {
    const { asked, calledAt, heard } = call;
    if (asked.kind === 'read')
      return heard === undefined
        ? []
        : [{ request: { kind: 'read' }, calledAt, returned: { at: heard.at, answer: { values: [heard.value] } } }];
    const version = heard?.value ?? versionOf.get(call);
    if (version === undefined) return [];
    const request = { kind: 'cas', from: version - 1, to: version } as const;
    return [{ request, calledAt, ...(heard !== undefined && { returned: { at: heard.at, answer: { swapped: true } } }) }];
  });
  return [first, ...withSeenEffects(operations)];
}
