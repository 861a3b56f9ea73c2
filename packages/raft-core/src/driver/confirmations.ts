import type { LogStart } from '../ports.ts';
import type { LogIndex, Message, NodeId, ReadRequest } from '../types.ts';
import type { ConfirmOutcome, RefusalReason, UnconfirmedReason } from './outcome.ts';

type Confirm = Extract<Message, { type: 'Confirm' }>;
type ConfirmResp = Extract<Message, { type: 'ConfirmResp' }>;

/** Called once. */
export type ConfirmDone = (outcome: ConfirmOutcome) => void;

interface Question {
  readonly to: NodeId;
  readonly index: LogIndex;
  readonly done: ConfirmDone;
}

interface Asked extends Question {
  readonly request: ReadRequest;
  readonly untilMs: number;
}

/**
 * Asks peers whether they have applied an entry, and answers such questions. Ask a peer one question at a time: a newer one replaces the
 * one that it has not answered. An answer counts for its own question alone, so it was given after that was asked, whatever the network
 * repeats or delays. No term is compared: an applied entry is committed, and no later leader lacks it.
 */
export class Confirmations {
  readonly #self: Pick<LogStart, 'nodeId' | 'clusterId' | 'incarnation'>;
  #queued: Question[] = [];
  #asked: Asked[] = [];
  #id = 0;
  /** The newest question of each peer, until it is answered. */
  readonly #toAnswer = new Map<NodeId, Confirm>();

  constructor(self: Pick<LogStart, 'nodeId' | 'clusterId' | 'incarnation'>) {
    this.#self = self;
  }

  queue(question: Question): void {
    this.#queued.push(question);
  }

  /** Returns the queued questions as messages. Each waits for its answer until `untilMs`. */
  ask(untilMs: number): readonly Message[] {
    const { nodeId: from, clusterId, incarnation } = this.#self;
    const asked = this.#queued.map((question) => ({ ...question, request: { id: ++this.#id, incarnation }, untilMs }));
    this.#queued = [];
    this.#asked.push(...asked);
    return asked.map(({ to, request, index }) => ({ type: 'Confirm', from, to, term: 0, clusterId, session: 0, request, index }));
  }

  receive(message: Confirm | ConfirmResp): void {
    const { type, from, to, clusterId, request, index } = message;
    const { nodeId, incarnation } = this.#self;
    if (to !== nodeId || from === nodeId || clusterId !== this.#self.clusterId) return;
    if (type === 'Confirm') this.#toAnswer.set(from, message);
    else if (request.incarnation === incarnation)
      this.#end((asked) => asked.to === from && asked.request.id === request.id, { kind: 'applied', index });
  }

  /** Returns the answers that this node can give. @param appliedIndex - applied and published */
  answers(appliedIndex: LogIndex): readonly Message[] {
    const answers: Message[] = [];
    for (const [peer, { to, from, request, index, ...rest }] of this.#toAnswer) {
      if (index > appliedIndex) continue;
      this.#toAnswer.delete(peer);
      answers.push({ ...rest, type: 'ConfirmResp', from: to, to: from, request, index: appliedIndex });
    }
    return answers;
  }

  unreachable(peer: NodeId): void {
    this.#refuse(({ to }) => to === peer, 'unanswered');
  }

  expire(nowMs: number): void {
    this.#refuse(({ untilMs }) => untilMs <= nowMs, 'unanswered');
  }

  refuseAll(reason: RefusalReason): void {
    const queued = this.#queued;
    this.#queued = [];
    for (const { done } of queued) done({ kind: 'refused', reason });
    this.#refuse(() => true, reason);
  }

  #refuse(which: (asked: Asked) => boolean, reason: UnconfirmedReason): void {
    this.#end(which, { kind: 'refused', reason });
  }

  #end(which: (asked: Asked) => boolean, outcome: ConfirmOutcome): void {
    if (!this.#asked.some(which)) return;
    const ended = this.#asked.filter(which);
    this.#asked = this.#asked.filter((asked) => !which(asked));
    for (const { done } of ended) done(outcome);
  }
}
