import type { LogIndex, ProposalOutcome, ReadOutcome } from '@transitd/raft-core';
import type { SimRandom } from '../../fakes/sim-random.ts';
import { checkLinearizable, type Verdict } from '../../history/linearizable.ts';
import type { Operation, Request } from '../../history/operation.ts';
import { withSeenEffects } from '../../history/seen-effects.ts';
import { holds, Violation } from '../checks/violation.ts';
import type { Incarnation, Member } from '../node/member.ts';
import type { Command, MachineResult } from '../storage/command.ts';
import type { SimMachine } from '../storage/storage.ts';
import type { World } from './world.ts';

const PATIENCE_MS = 4_000;
/** Limit of steps in the search for an order of one key. */
const SEARCH_STEPS_MAX = 200_000;

interface Call {
  readonly key: number;
  readonly request: Request;
  readonly calledAt: number;
  /** Highest log position that any answered call had reached when this call began. The answer to this call must not be older. */
  readonly floor: LogIndex;
  returned: Operation['returned'];
  /** Called when the operation certainly never happened. */
  refused: boolean;
}

/** Called with the answer, unless the client has given up. */
type Answer = (take: () => void) => void;

/**
 * Closed-loop clients: each sends a request and waits for its answer, or gives up and never learns the answer. Their answers are checked in
 * two ways. At once, by log positions: an answer is never older than one that was given before the request. At the end, without log
 * positions, by a search for an order of the operations that explains all values.
 */
export class Clients {
  readonly #cluster: World;
  readonly #random: SimRandom;
  readonly #calls: Call[] = [];
  #answeredUpTo: LogIndex = 0;
  #waiting = 0;
  #stopped = false;

  constructor(cluster: World, random: SimRandom) {
    this.#cluster = cluster;
    this.#random = random;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Highest log position that any answered call has shown. */
  get answeredUpTo(): LogIndex {
    return this.#answeredUpTo;
  }

  start(): void {
    for (let client = 0; client < this.#cluster.config.clients; client++) this.#think();
  }

  /** Starts no new calls from now on. */
  stop(): void {
    this.#stopped = true;
  }

  /** Starts many calls at once. */
  burst(count: number): void {
    for (let i = 0; i < count; i++) this.#ask(() => undefined);
  }

  /** Reads on every node that believes it leads. */
  readOnLeaders(): void {
    for (const member of this.#cluster.running) {
      if (member.observed.status?.role === 'leader') this.#read(member, 0, () => undefined);
    }
  }

  /** Reads on that node. */
  readOn(member: Member): void {
    this.#read(member, 0, () => undefined);
  }

  /** Reads every key on that node through its leader. */
  readAll(member: Member, done: (answered: boolean) => void): void {
    const keys = this.#cluster.config.keys * 2;
    let left = keys;
    let answered = true;
    for (let key = 0; key < keys; key++) {
      this.#read(member, key, (ok) => {
        answered &&= ok;
        left -= 1;
        if (left === 0) done(answered);
      });
    }
  }

  #think(): void {
    const { clock, config } = this.#cluster;
    clock.after(1 + this.#random.below(config.thinkMsMax), () => {
      if (!this.#stopped) this.#ask(() => this.#think());
    });
  }

  #ask(then: () => void): void {
    const running = this.#cluster.members.filter(({ incarnation }) => incarnation !== undefined);
    if (running.length === 0) {
      then();
      return;
    }
    const leader = running.find(({ observed }) => observed.status?.role === 'leader');
    const member = leader !== undefined && this.#random.chance(0.75) ? leader : this.#random.pick(running);
    const key = this.#random.below(2 * this.#cluster.config.keys);
    if (this.#random.chance(0.4)) this.#read(member, key, then);
    else this.#write(member, key, then);
  }

  /** Even keys are registers, odd keys are lists. */
  #write(member: Member, key: number, then: () => void): void {
    const { incarnation } = member;
    if (incarnation === undefined) return;
    const operation = this.#calls.length + 1;
    const wanted = this.#requestFor(key, operation);
    const { request, data } = incarnation.machine.prepare(
      { operation, key: key >> 1, request: wanted },
      14 + this.#random.below(60),
    );
    const call = this.#call(key, request);
    const answer = this.#patiently(then);
    this.#cluster.enter(member, incarnation, () =>
      incarnation.host.propose(data, (outcome) => answer(() => this.#written(call, incarnation.machine, outcome))),
    );
  }

  #requestFor(key: number, value: number): Command['request'] {
    if (key % 2 === 1) return { kind: 'append', value };
    if (this.#random.chance(0.5)) return { kind: 'write', value };
    // A recent value of the register, so that some of these requests succeed.
    const recent = this.#calls.findLast((call) => call.key === key && call.request.kind === 'write');
    return { kind: 'cas', from: recent?.request.kind === 'write' ? recent.request.value : 0, to: value };
  }

  #written(call: Call, machine: SimMachine, outcome: ProposalOutcome<MachineResult>): void {
    const { coverage } = this.#cluster;
    if (outcome.kind === 'unknown') coverage.met('outcome unknown');
    if (outcome.kind === 'refused') {
      if (outcome.reason === 'lostLeadership') coverage.met('proposal superseded');
      call.refused = true;
    }
    if (outcome.kind !== 'applied') return;
    const { index, result } = outcome;
    this.#position(call, machine, index);
    call.returned = {
      at: this.#cluster.events,
      answer: call.request.kind === 'cas' ? { swapped: result.swapped } : 'done',
    };
  }

  #read(member: Member, key: number, then: (answered: boolean) => void): void {
    const { incarnation } = member;
    if (incarnation === undefined) {
      then(false);
      return;
    }
    const call = this.#call(key, { kind: 'read' });
    const answer = this.#patiently(() => then(call.returned !== undefined));
    this.#cluster.enter(member, incarnation, () => {
      const wantsLease = this.#cluster.config.leaseReads && this.#random.chance(0.6);
      const lease = incarnation.leaseGuard.judge(incarnation.host.leaseEndMs());
      if (lease === 'jumped') this.#cluster.coverage.met('lease refused: a clock jumped');
      if (wantsLease && lease === 'held') {
        this.#cluster.coverage.met('lease read served');
        // A driver processes input only at its next turn.
        this.#cluster.safety.readByLease(member.observed, { knowsPromises: this.#cluster.config.profile === 'core' });
        this.#see(call, incarnation.machine, answer);
        return;
      }
      incarnation.host.readIndex((outcome) => this.#readable(call, { member, incarnation, outcome }, answer));
    });
  }

  #readable(
    call: Call,
    {
      member,
      incarnation,
      outcome,
    }: { readonly member: Member; readonly incarnation: Incarnation; readonly outcome: ReadOutcome },
    answer: Answer,
  ): void {
    if (outcome.kind !== 'readable') {
      answer(() => undefined);
      return;
    }
    const leads = member.observed.status?.role === 'leader';
    this.#see(call, incarnation.machine, (take) =>
      answer(() => {
        this.#cluster.coverage.met(leads ? 'leader read served' : 'follower read served');
        take();
      }),
    );
  }

  /** Reads the values as they are now. */
  #see(call: Call, machine: SimMachine, answer: Answer): void {
    const { applied } = machine;
    machine.read(call.key % 2 === 1 ? 'list' : 'register', call.key >> 1, (values) =>
      answer(() => {
        this.#position(call, machine, applied);
        call.returned = { at: this.#cluster.events, answer: { values } };
      }),
    );
  }

  /** Notes the log position that an answer of a node has shown. */
  #position(call: Call, { published }: SimMachine, index: LogIndex): void {
    holds("no answer shows what the node's other threads cannot know", index <= published, () => ({ index, published }));
    holds('an answer is never older than one given before its request', index >= call.floor, () => ({
      request: call.request.kind,
      position: index,
      floor: call.floor,
    }));
    this.#answeredUpTo = Math.max(this.#answeredUpTo, index);
    for (const { incarnation } of this.#cluster.running) incarnation?.threads.answered(this.#answeredUpTo);
  }

  #call(key: number, request: Request): Call {
    const call: Call = {
      key,
      request,
      calledAt: this.#cluster.events,
      floor: this.#answeredUpTo,
      returned: undefined,
      refused: false,
    };
    this.#calls.push(call);
    return call;
  }

  /** Takes one answer, unless the client has given up. */
  #patiently(then: () => void): Answer {
    let ended = false;
    this.#waiting += 1;
    const end = (take: () => void): void => {
      if (ended) return;
      ended = true;
      this.#waiting -= 1;
      take();
      then();
    };
    this.#cluster.clock.after(PATIENCE_MS, () => end(() => undefined));
    return end;
  }

  /**
   * Searches for an order, key by key. Requests that were never committed never happened; other requests without an answer stay open.
   * @param log - the committed entries, as some node applied them
   */
  check(log: ReadonlySet<number>): Record<Verdict, number> {
    const verdicts = { linearizable: 0, violated: 0, unknown: 0 };
    for (let key = 0; key < 2 * this.#cluster.config.keys; key++) {
      const history: Operation[] = [];
      for (const [position, { key: of, request, calledAt, returned, refused }] of this.#calls.entries()) {
        if (of !== key) continue;
        const happened = log.has(position + 1);
        const wrote = request.kind !== 'read';
        holds('a refused write never takes effect', !(wrote && refused && happened), () => ({ operation: position + 1 }));
        holds('no acknowledged write is lost', !wrote || returned === undefined || happened, () => ({
          operation: position + 1,
        }));
        if (returned !== undefined) history.push({ request, calledAt, returned });
        else if (wrote && happened) history.push({ request, calledAt });
      }
      const verdict = checkLinearizable(withSeenEffects(history), {
        kind: key % 2 === 1 ? 'list' : 'register',
        stepsMax: SEARCH_STEPS_MAX,
      });
      if (verdict === 'violated') throw new Violation('histories are linearizable', { key, operations: history.length });
      verdicts[verdict] += 1;
    }
    return verdicts;
  }
}
