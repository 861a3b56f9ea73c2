import { UseTally } from '@transitd/transit-engine';
import { expect } from 'chai';
import fc from 'fast-check';
import { UsageLedger } from '../../src/usage/usage-ledger.ts';
import { mergedAnswers, type NodeAnswer, recordedOf, type UsageMarks, unansweredIn } from '../../src/usage/usage-marks.ts';
import { unknownProcess } from '../../src/usage/usage-wire.ts';

const clusterId = 'c1';

interface TestNode {
  readonly name: string;
  isMember: boolean;
  /** The note in its data directory. */
  note: string;
  /** Undefined while it is down. */
  ledger: UsageLedger | undefined;
}

/** A cluster whose nodes stop, die, lose their disks, leave and return. Each use is of a version of its own. */
class Cluster {
  nowMs = 1;
  readonly nodes: readonly TestNode[] = ['n1', 'n2'].map((name) => ({ name, isMember: true, note: '', ledger: undefined }));
  readonly usedMs = new Map<number, number>();
  #marks: UsageMarks = { clusterId, nodes: {} };
  #recorded = new Set<number>();
  #backup = { marks: this.#marks, recorded: new Set<number>() };
  #restores = 0;

  /** @param asks - whether it lives until the active node has recorded that it counts */
  async start(node: TestNode, asks = true): Promise<void> {
    if (node.ledger !== undefined) return;
    node.ledger = new UsageLedger({ utcMs: () => this.nowMs }, node.note);
    node.note = unknownProcess;
    if (node.isMember && asks) await this.record();
  }

  async join(node: TestNode): Promise<void> {
    node.isMember = true;
    await this.record();
  }

  /** @param reaches - whether the active node can be asked to record the uses */
  async stop(node: TestNode, reaches: boolean): Promise<void> {
    const { ledger } = node;
    if (ledger === undefined) return;
    ledger.end();
    // As the collector does.
    for (let attempt = 0; reaches && attempt < 3 && (attempt === 0 || ledger.endsAs === unknownProcess); attempt++)
      await this.record();
    node.note = ledger.endsAs;
    node.ledger = undefined;
  }

  backUp(): void {
    this.#backup = { marks: this.#marks, recorded: new Set(this.#recorded) };
  }

  restore(): void {
    this.#marks = this.#backup.marks;
    this.#recorded = new Set(this.#backup.recorded);
    this.#restores += 1;
  }

  /** @param isLost - because the thread that counted it died */
  use({ ledger, isMember }: TestNode, isLost = false): void {
    if (ledger === undefined || !isMember) return;
    const version = this.usedMs.size + 1;
    this.usedMs.set(version, this.nowMs);
    if (isLost) {
      ledger.addFromThread([], { hasLost: true });
      return;
    }
    const tally = new UseTally();
    tally.keyId = 'a';
    tally.add('encryptions', version);
    ledger.count('m', 'k', tally);
  }

  async record(): Promise<void> {
    const { marks, uses } = mergedAnswers(this.#marks, await this.#answers('next'), this.#state);
    this.#marks = marks;
    for (const { version } of uses) this.#recorded.add(version);
  }

  /** Returns the uses that are taken for none, although they were since counting began. */
  async missing(): Promise<readonly number[]> {
    const answers = await this.#answers('key');
    const { marks, uses, gone } = mergedAnswers(this.#marks, answers, this.#state);
    const { sinceMs } = marks;
    if (sinceMs === undefined || unansweredIn(answers).length > 0 || gone.length > 0) return [];
    const seen = new Set([...this.#recorded, ...uses.map(({ version }) => version)]);
    return [...this.usedMs].filter(([version, ms]) => ms > sinceMs && !seen.has(version)).map(([version]) => version);
  }

  /** Whether something can be said about the uses at a time. */
  isCountedSince(ms: number): boolean {
    return (this.#marks.sinceMs ?? Number.POSITIVE_INFINITY) <= ms;
  }

  get #state() {
    return { clusterId, restoredBy: this.#restores === 0 ? undefined : String(this.#restores), nowMs: this.nowMs };
  }

  #answers(kind: 'next' | 'key'): Promise<NodeAnswer[]> {
    return Promise.all(
      this.nodes
        .filter(({ isMember }) => isMember)
        .map(async ({ name, ledger }): Promise<NodeAnswer> => {
          const { process, batch: merged } = recordedOf(this.#marks, name);
          const question = kind === 'next' ? { kind, process, merged } : { kind, id: 'a' };
          return { name, answer: ledger === undefined ? 'silent' : await ledger.report(question) };
        }),
    );
  }
}

const kinds = [
  'use',
  'use',
  'use',
  'record',
  'record',
  'start',
  'start',
  'run',
  'stop',
  'cut',
  'die',
  'wipe',
  'leave',
  'join',
  'wait',
  'backup',
  'restore',
  'lose',
] as const;

describe('the uses of nodes that stop and die', () => {
  it('never count as unused: they are recorded, or counting began after them', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ kind: fc.constantFrom(...kinds), at: fc.nat(1) }), { maxLength: 60, size: 'max' }),
        async (events) => {
          const cluster = new Cluster();
          for (const { kind, at } of events) {
            const node = cluster.nodes[at] as TestNode;
            cluster.nowMs += 1;
            if (kind === 'use' || kind === 'lose') cluster.use(node, kind === 'lose');
            else if (kind === 'record') await cluster.record();
            else if (kind === 'start') await cluster.start(node);
            else if (kind === 'backup') cluster.backUp();
            else if (kind === 'restore') cluster.restore();
            else if (kind === 'run') {
              await cluster.start(node, false);
              await cluster.stop(node, true);
            } else if (kind === 'stop' || kind === 'cut') await cluster.stop(node, kind === 'stop');
            else if (kind === 'die') node.ledger = undefined;
            else if (kind === 'wipe') Object.assign(node, { ledger: undefined, note: '' });
            else if (kind === 'wait') cluster.nowMs += 700_000;
            else if (kind === 'join') await cluster.join(node);
            else node.isMember = false;
            expect(await cluster.missing(), `after ${kind} of ${node.name}`).to.deep.equal([]);
          }
        },
      ),
      { numRuns: 2000 },
    ));

  it('are known all the time while nodes only stop and start, however soon', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ kind: fc.constantFrom('use', 'record', 'start', 'begin', 'stop'), at: fc.nat(1) }), {
          maxLength: 30,
          size: 'max',
        }),
        async (events) => {
          const cluster = new Cluster();
          for (const node of cluster.nodes) await cluster.start(node);
          await cluster.record();
          const beganMs = cluster.nowMs;
          for (const { kind, at } of events) {
            const node = cluster.nodes[at] as TestNode;
            cluster.nowMs += 1;
            if (kind === 'use') cluster.use(node);
            else if (kind === 'record') await cluster.record();
            else if (kind === 'stop') await cluster.stop(node, true);
            else await cluster.start(node, kind === 'start');
            expect(cluster.isCountedSince(beganMs), `after ${kind} of ${node.name}`).to.equal(true);
            expect(await cluster.missing(), `after ${kind} of ${node.name}`).to.deep.equal([]);
          }
        },
      ),
      { numRuns: 500 },
    ));
});
