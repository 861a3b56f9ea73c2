// One main thread and two gateways over one record. The steps of publishing and draining are those of the product.
import { ChangePublisher } from '../../../src/threads/coherence/change-publisher.ts';
import { ChangeReader } from '../../../src/threads/coherence/change-reader.ts';
import type { GatewayMessage } from '../../../src/threads/coherence/messages.ts';
import type { Alternatives, Thread, World } from './interleavings.ts';

export interface ModelOptions {
  /** Number of changes that the first gateway makes before its request. */
  readonly commits: number;
  /** @see ChangePublisherOptions */
  readonly lagMax: number;
  /** Whether the gateways have the record in their caches at the start. */
  readonly isWarm: boolean;
  readonly fault?: Fault;
}

export type Fault =
  | 'raises the counter before it posts'
  | 'answers a commit before it publishes the change'
  | 'does not drain when a request begins'
  | 'does not drain after an await'
  | 'sends replies through a port of their own'
  | 'ignores a gap in the numbers'
  | 'ignores that the port is empty';

interface MainRequest {
  readonly gateway: Gateway;
  readonly kind: 'get' | 'commit';
}

/** A gateway with a cache of the record, as `KeyCache` has one: a change during a load makes the load invalid. */
class Gateway {
  readonly port: GatewayMessage[] = [];
  readonly replies: GatewayMessage[] = [];
  readonly client = { head: undefined as number | undefined, body: undefined as number | undefined };
  /** The cached version of the record. */
  cached: number | undefined;
  /** The newest version whose change was reported to the watchers; infinite after `everything` until the next read. */
  reported = 0;
  /** Whether a change was reported since the load in progress began. */
  hasChanged = false;
  reply: number | undefined;
  drained = 0;
  /** Where this thread is in its code, with the values that it keeps there. */
  at = 'start';
  /** The counter that the drain in progress has read. */
  upTo: number | undefined;
}

/** Returns the world in its first state. Its threads throw if a request uses a version that is older than its client may expect. */
export function model({ commits, lagMax, isWarm, fault }: ModelOptions): World {
  let counter = 0;
  let version = 0;
  /** The newest version that a client knows to be in force. */
  let acknowledged = 0;
  /** Where the main thread is in its code. */
  let at = 'start';
  let waiting = commits;
  const inbox: MainRequest[] = [];
  const gateways = [new Gateway(), new Gateway()];
  const raise = (number: number): void => {
    counter = number;
  };
  const publisher = new ChangePublisher({ lagMax, raise });
  for (const gateway of gateways) {
    if (isWarm) gateway.cached = 0;
    publisher.add({ post: (message) => gateway.port.push(message), drained: () => gateway.drained });
  }

  function* main(): Thread {
    for (;;) {
      at = 'idle';
      // The main thread ends once nobody can ask it any more; a real one would go on waiting.
      const choice = yield [() => inbox.length > 0, () => waiting === 0 && inbox.length === 0 && gateways.every(isDone)];
      const request = inbox.shift();
      if (choice === 1 || request === undefined) {
        at = 'done';
        return;
      }
      if (request.kind === 'commit') {
        waiting -= 1;
        version += 1;
        if (fault === 'answers a commit before it publishes the change') {
          at = 'answers first';
          yield;
          reply(request.gateway);
          yield* publishing();
          continue;
        }
        if (fault === 'raises the counter before it posts') {
          at = 'raises first';
          yield;
          counter = publisher.number + 1;
        }
        yield* publishing();
      }
      at = `replies to ${gateways.indexOf(request.gateway)}`;
      yield;
      reply(request.gateway);
    }
  }

  function* publishing(): Thread {
    const steps = publisher.publishing([{ path: 'record', revision: version, deleted: false }]);
    for (let step = 0; steps.next().done !== true; step++) {
      at = `publishes, step ${step}`;
      yield;
    }
  }

  function reply(gateway: Gateway): void {
    const port = fault === 'sends replies through a port of their own' ? gateway.replies : gateway.port;
    port.push({ kind: 'reply', number: publisher.number, id: 0, result: { kind: 'value', value: version } });
  }

  const isDone = (gateway: Gateway): boolean => gateway.at === 'done';

  function readerOf(gateway: Gateway): ChangeReader {
    return new ChangeReader({
      start: 0,
      counter: () => {
        gateway.upTo = counter;
        return counter;
      },
      receive: () => {
        const message = gateway.port.shift();
        // A reader that took the empty port for the end of the changes would go on as if it had drained them.
        if (message === undefined && fault === 'ignores that the port is empty') throw new Abandoned();
        return message;
      },
      onChanges: (changes) => {
        if (changes === 'everything' && fault === 'ignores a gap in the numbers') return;
        // The reader would survive it, because `everything` makes it read again. But then it would not find changes in time by the port.
        if (changes === 'everything' && lagMax >= commits)
          throw new Violation('a change was not in the port when the counter named it');
        gateway.reported = changes === 'everything' ? version : (changes[0]?.revision ?? 0);
        gateway.cached = undefined;
        gateway.hasChanged = true;
      },
      onReply: ({ result }) => {
        if (result.kind !== 'value') throw new Error('the model sends values only');
        gateway.reply = Number(result.value);
        if (gateway.reply > gateway.reported) throw new Violation('a reply arrived before the change that it shows');
      },
      onDrained: (number) => {
        gateway.drained = number;
      },
    });
  }

  /** Makes the changes and reports each to its client. */
  function* changingGateway(gateway: Gateway): Thread {
    const reader = readerOf(gateway);
    for (let left = commits; left > 0; left--) {
      gateway.at = `commits, ${left} left`;
      yield;
      inbox.push({ gateway, kind: 'commit' });
      gateway.at = `waits for its commit, ${left} left`;
      const committed = yield* replied(gateway, reader);
      yield* drain(gateway, reader);
      if ((yield* use(gateway, reader)) < committed) throw new Violation('a request missed its own change');
      gateway.at = `answers, ${left} left`;
      yield;
      acknowledged = Math.max(acknowledged, committed);
    }
    gateway.at = 'done';
  }

  /** Serves one request, whose body may arrive long after its head. */
  function* readingGateway(gateway: Gateway): Thread {
    const reader = readerOf(gateway);
    yield* arrived(gateway, reader, 'head');
    if (fault !== 'does not drain when a request begins') yield* drain(gateway, reader);
    check(yield* use(gateway, reader), gateway.client.head);
    yield* arrived(gateway, reader, 'body');
    if (fault !== 'does not drain after an await') yield* drain(gateway, reader);
    check(yield* use(gateway, reader), gateway.client.body);
    gateway.at = 'done';
  }

  function check(used: number, expected: number | undefined): void {
    if (used < (expected ?? 0)) throw new Violation(`a request used version ${used}, its client knew of ${expected}`);
  }

  function* drain(gateway: Gateway, reader: ChangeReader): Thread {
    gateway.at += ', drains';
    gateway.upTo = undefined;
    try {
      yield* reader.draining();
    } catch (error) {
      if (!(error instanceof Abandoned)) throw error;
    }
    gateway.upTo = undefined;
  }

  /** Returns the version in the cache, loaded from the main thread if need be. */
  function* use(gateway: Gateway, reader: ChangeReader): Generator<Alternatives | undefined, number, number> {
    while (gateway.cached === undefined) {
      gateway.hasChanged = false;
      const before = gateway.at;
      gateway.at = `${before}, asks`;
      yield;
      inbox.push({ gateway, kind: 'get' });
      gateway.at = `${before}, waits`;
      const loaded = yield* replied(gateway, reader);
      if (fault !== 'does not drain after an await') {
        gateway.at = `${before}, has ${loaded}`;
        yield* drain(gateway, reader);
      }
      gateway.at = before;
      if (!gateway.hasChanged) gateway.cached = loaded;
    }
    return gateway.cached;
  }

  /** Waits in the event loop for a reply; meanwhile the loop takes messages from the port. */
  function* replied(gateway: Gateway, reader: ChangeReader): Generator<Alternatives, number, number> {
    while (gateway.reply === undefined) {
      const choice = yield [() => gateway.port.length > 0, () => gateway.replies.length > 0];
      takeOne(choice === 0 ? gateway.port : gateway.replies, reader);
    }
    const { reply } = gateway;
    gateway.reply = undefined;
    return reply;
  }

  /** Waits in the event loop for a part of the client's request; meanwhile the loop may take messages from the port, or not. */
  function* arrived(gateway: Gateway, reader: ChangeReader, part: 'head' | 'body'): Generator<Alternatives, void, number> {
    gateway.at = `waits for the ${part}`;
    for (;;) {
      const choice = yield [() => gateway.client[part] !== undefined, () => gateway.port.length > 0];
      if (choice === 0) return;
      takeOne(gateway.port, reader);
    }
  }

  function takeOne(port: GatewayMessage[], reader: ChangeReader): void {
    const message = port.shift();
    if (message !== undefined) reader.take(message);
  }

  /** A client sends the two parts of its request at any time, and remembers what it knew when it sent them. */
  function* client({ client: sent }: Gateway): Thread {
    yield;
    sent.head = acknowledged;
    yield;
    sent.body = acknowledged;
  }

  const [first, second] = gateways;
  if (first === undefined || second === undefined) throw new Error('there are two gateways');
  return {
    threads: [main(), changingGateway(first), readingGateway(second), client(second)],
    state: () => {
      const requests = inbox.map(({ gateway, kind }) => [gateways.indexOf(gateway), kind]);
      return JSON.stringify([at, waiting, counter, version, acknowledged, publisher.number, requests, gateways]);
    },
  };
}

export class Violation extends Error {}
class Abandoned extends Error {}
