import {
  type Cursor,
  cursorOf,
  type ReplicatedRecord,
  type ReplicatedSnapshot,
  type ReplicationState,
  type ReplicationStep,
} from '@transitd/storage-fsm';
import { successionKeyBytes } from '../../src/roles/meeting.ts';
import { localPrefixes } from '../../src/scope.ts';
import type { PrimaryCluster, Proposed, SecondaryCluster } from '../../src/sessions/session-ports.ts';
import type { PrimaryNodes } from '../../src/stream/frame.ts';
import { OutcomeLog } from '../../src/stream/outcome-log.ts';

export const [set, epochId, otherId] = ['01', '0a', '0b'].map((digits) => digits.repeat(16)) as [string, string, string];
export const nodes: PrimaryNodes = { addresses: ['127.0.0.1:8201'], authorities: ['PEM'] };

export const rootKey = Buffer.alloc(32, 7);
export const successionKey = Buffer.alloc(successionKeyBytes, 9);

/** A primary whose records are in a map. */
export class TestPrimary implements PrimaryCluster {
  readonly records = new Map<string, ReplicatedRecord>();
  readonly registrations: string[] = [];
  readonly answers: { readonly secondary: string; readonly sentMs: number }[] = [];
  readonly supersededBy: string[] = [];
  acknowledgements = 0;
  outcomes: OutcomeLog;
  current: ReplicationState | undefined = {
    ...{ role: 'primary', set, local: localPrefixes, index: 10, offset: 0, seen: 1 },
    epochs: [{ number: 1, id: epochId, start: 10 }],
  };
  index = 10;
  featureLevel = 3;
  successionKey: Uint8Array | undefined = successionKey;
  readonly unprovenClaims: string[] = [];
  openReaders = 0;
  /** Resolves the next registration; it is committed at once by default. */
  register: () => Promise<void> = async () => undefined;
  #attempts = 0;

  constructor({ bytesMax = 100_000, heldBytesMax = 1_000_000 }: { bytesMax?: number; heldBytesMax?: number } = {}) {
    this.outcomes = new OutcomeLog({ bytesMax, heldBytesMax });
    this.outcomes.note({ kind: 'restart', at: this.index });
  }

  write(path: string, value: string | Buffer): void {
    const from = this.index;
    this.index += 1;
    const record = { path, value: Buffer.from(value), revision: this.index };
    this.records.set(path, record);
    this.outcomes.note({ kind: 'outcome', outcome: { from, to: this.index, writes: [record], valuesWritten: 1 } });
  }

  level(): number {
    return this.featureLevel;
  }

  state(): ReplicationState | undefined {
    return this.current;
  }

  position(): number {
    return this.index;
  }

  digest(at: number): bigint | undefined {
    return at === this.index ? digestOf(this.records) : undefined;
  }

  async wholeState(): Promise<ReplicatedSnapshot | undefined> {
    if (this.current === undefined) return undefined;
    this.openReaders += 1;
    const records = [...this.records.values()];
    return {
      state: this.current,
      index: this.index,
      valuesWritten: this.index,
      get: (path) => this.records.get(path),
      pages: async function* () {
        for (let at = 0; at < records.length; at += 3) yield records.slice(at, at + 3);
      },
      close: async () => {
        this.openReaders -= 1;
      },
    };
  }

  async rootKey(): Promise<Uint8Array> {
    return Buffer.from(rootKey);
  }

  newAttempt(): string {
    this.#attempts += 1;
    return `attempt-${this.#attempts}`;
  }

  async registered(secondary: string): Promise<void> {
    await this.register();
    this.registrations.push(secondary);
  }

  unproven(secondary: string): void {
    this.unprovenClaims.push(secondary);
  }

  async superseded({ id }: { readonly id: string }): Promise<void> {
    this.supersededBy.push(id);
  }

  acknowledged(): void {
    this.acknowledgements += 1;
  }

  answered(secondary: string, sentMs: number): void {
    this.answers.push({ secondary, sentMs });
  }

  nodes: () => PrimaryNodes = () => nodes;
}

/** A secondary whose records are in a map; it accepts the steps that the state machine accepts. */
export class TestSecondary implements SecondaryCluster {
  records = new Map<string, ReplicatedRecord>();
  readonly learned: PrimaryNodes[] = [];
  readonly keys: Buffer[] = [];
  readonly positions: Cursor[] = [];
  readonly steps: ReplicationStep[] = [];
  isAnswering = true;
  wantsWholeState = false;
  featureLevel = 3;
  answers = 0;
  countings = 0;
  /** Runs before a step is committed; a step is committed at once by default. */
  commit: (step: ReplicationStep) => Promise<Proposed> = async () => 'committed';
  current: ReplicationState | undefined = {
    ...{ role: 'secondary', set, local: localPrefixes, index: 0, offset: 0, seen: 0 },
    epochs: [],
  };
  #staged: { attempt: string; records: Map<string, ReplicatedRecord> } | undefined;

  level(): number {
    return this.featureLevel;
  }

  state(): ReplicationState | undefined {
    return this.current;
  }

  digest(): bigint | undefined {
    return digestOf(this.records);
  }

  async propose(step: ReplicationStep): Promise<Proposed> {
    const result = await this.commit(step);
    return result === 'committed' ? this.#apply(step) : result;
  }

  rootKey(key: Uint8Array): void {
    this.keys.push(Buffer.from(key));
    key.fill(0);
  }

  mayAnswer(): boolean {
    return this.isAnswering;
  }

  answered(): void {
    this.answers += 1;
  }

  receiving(): void {}

  counted(): void {
    this.countings += 1;
  }

  heard({ at }: { readonly at: Cursor }): void {
    this.positions.push(at);
  }

  nodes(learned: PrimaryNodes): void {
    this.learned.push(learned);
  }

  successionKey: Uint8Array | undefined = successionKey;
  unprovenClaims = 0;
  unproven(): void {
    this.unprovenClaims += 1;
  }

  async superseded(): Promise<void> {
    if (this.current !== undefined) this.current = { ...this.current, role: 'superseded' };
  }

  #apply(step: ReplicationStep): 'committed' | 'conflict' {
    const state = this.current;
    const at = state && cursorOf(state);
    if (state === undefined) return 'conflict';
    this.steps.push(step);
    if (step.kind === 'stage') {
      if (step.chunk === 0) this.#staged = { attempt: step.attempt, records: new Map() };
      if (this.#staged?.attempt !== step.attempt) return 'conflict';
      for (const record of step.records) this.#staged.records.set(record.path, copied(record));
    } else if (step.kind === 'swap') {
      if (this.#staged?.attempt !== step.attempt || this.#staged.records.size !== step.records) return 'conflict';
      this.records = this.#staged.records;
      this.current = { ...state, epochs: step.epochs, index: step.index };
    } else if (step.kind === 'follow') {
      if (at === undefined || step.from.index !== at.index || step.from.id !== at.id) return 'conflict';
      for (const { path, value, revision } of step.writes)
        if (value === null) this.records.delete(path);
        else this.records.set(path, copied({ path, value, revision }));
      this.current = { ...state, index: step.to };
    } else if (step.kind === 'adopt') this.current = { ...state, epochs: step.epochs };
    return 'committed';
  }
}

/** Values of a frame are views of its bytes. */
const copied = ({ path, value, revision }: ReplicatedRecord): ReplicatedRecord => ({ path, value: Buffer.from(value), revision });

const digestOf = (records: ReadonlyMap<string, ReplicatedRecord>): bigint =>
  [...records.values()].reduce((sum, { revision }) => sum + BigInt(revision), 0n);

export const textsOf = (records: ReadonlyMap<string, ReplicatedRecord>): Record<string, string> =>
  Object.fromEntries(
    [...records].sort().map(([path, { value, revision }]) => [path, `${Buffer.from(value).toString()}@${revision}`]),
  );
