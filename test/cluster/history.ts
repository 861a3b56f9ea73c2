// What clients asked of single keys and what they heard, brought into the terms of the linearizability checker.
import { checkLinearizable, type Operation, type Verdict, withSeenEffects } from '@transitd/raft-core/sim';

/**
 * A `setting` is one number of a key that clients choose, each another one; 0 while there is no such key. A `counter` is the
 * latest version of a key that is only rotated.
 */
export type KeyKind = 'setting' | 'counter';

export type Asked =
  | { readonly kind: 'create'; readonly value: number }
  | { readonly kind: 'set'; readonly value: number }
  | { readonly kind: 'delete' }
  | { readonly kind: 'rotate' }
  | { readonly kind: 'read' };

/** One call. Without `heard` nobody knows whether it took effect. */
export interface Call {
  readonly key: string;
  readonly asked: Asked;
  /** Positions in the one order of all calls and returns that this process saw. */
  readonly calledAt: number;
  /** For a person who reads a history: through which node. */
  readonly via: string;
  heard?: { readonly at: number; readonly value: number };
}

/** Steps that the search for an order may take for one key. */
const stepsMax = 2_000_000;

/** Keeps the calls of all clients of a run. What was refused, and so never happened, is left out. */
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

  /** @param value - the key's number after the call; 0 for a key that is not there */
  returned(call: Call, value: number): void {
    this.#clock += 1;
    call.heard = { at: this.#clock, value };
  }

  /** It certainly never happened, or it was a read that says nothing. */
  refused(call: Call): void {
    this.#calls.get(call.key)?.calls.delete(call);
  }

  /** The highest version whose rotation has been acknowledged so far: what nobody may answer from before. */
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

  /** Whether one order explains what was heard of this key. */
  verdict(key: string): Verdict {
    const known = this.#calls.get(key);
    if (known === undefined) return 'linearizable';
    const calls = [...known.calls];
    const operations = known.kind === 'setting' ? settingOperations(calls) : counterOperations(calls);
    return checkLinearizable(operations, { kind: 'register', stepsMax });
  }

  /** Keys whose histories have no order, or none that was found. */
  verdicts(): ReadonlyMap<string, Exclude<Verdict, 'linearizable'>> {
    const bad = new Map<string, Exclude<Verdict, 'linearizable'>>();
    for (const key of this.#calls.keys()) {
      const verdict = this.verdict(key);
      if (verdict !== 'linearizable') bad.set(key, verdict);
    }
    return bad;
  }

  /** One line a call, for a person. */
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
  // Every delete writes 0: who saw it cannot tell which delete that was.
  const isDelete = ({ request }: Operation): boolean => request.kind === 'write' && request.value === 0;
  return operations.map((operation, index) => (isDelete(operation) ? operation : (seen[index] ?? operation)));
}

/**
 * A setting as a register. To create is to swap 0 for a value, to delete is to write 0; a key that is answered as it is was read.
 * @returns undefined for a call that says nothing
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
 * A counter as a register that each rotation swaps from one version to the next. A version that somebody saw and nobody was
 * answered with is the work of a rotation that was never answered: the earliest called ones get the lowest of those versions,
 * which allows every order that any other choice allows. What is left of them changed nothing that anybody saw, and a version
 * that is left of those is one that nobody asked for: no order explains it.
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
