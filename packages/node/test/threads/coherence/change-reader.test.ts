import type { Changes } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { ChangePublisher } from '../../../src/threads/coherence/change-publisher.ts';
import { ChangeReader } from '../../../src/threads/coherence/change-reader.ts';
import type { GatewayMessage } from '../../../src/threads/coherence/messages.ts';

const changeOf = (path: string): Changes => [{ path, revision: 1, deleted: false }];

/** A publisher and a reader over a port in memory. */
function channel({ start = 0, lagMax = 100, onChanges }: { start?: number; lagMax?: number; onChanges?: () => void } = {}) {
  const port: GatewayMessage[] = [];
  const reported: Changes[] = [];
  const delivered: GatewayMessage[] = [];
  let [counter, drained, received] = [start, start, 0];
  const raise = (number: number): void => {
    counter = number;
  };
  const publisher = new ChangePublisher({ start, lagMax, raise });
  publisher.add({ post: (message) => port.push(message), drained: () => drained });
  const reader = new ChangeReader({
    start,
    counter: () => counter,
    receive: () => {
      received += 1;
      return port.shift();
    },
    onChanges: (changes) => {
      reported.push(changes);
      onChanges?.();
    },
    onReply: (reply) => delivered.push(reply),
    onDrained: (number) => {
      drained = number;
    },
  });
  return { port, reported, delivered, publisher, reader, received: () => received };
}

describe('a reader of changes', () => {
  it('reports the published changes in their order', () => {
    const { publisher, reader, reported } = channel();
    publisher.publish(changeOf('a'));
    publisher.publish(changeOf('b'));
    reader.drain();
    expect(reported).to.deep.equal([changeOf('a'), changeOf('b')]);
  });

  it('does not touch the port when the counter shows nothing new', () => {
    const { publisher, reader, received } = channel();
    publisher.publish(changeOf('a'));
    reader.drain();
    reader.drain();
    expect(received()).to.equal(1);
  });

  it('continues across the wrap of the numbers', () => {
    const { publisher, reader, reported } = channel({ start: 2 ** 31 - 1 });
    for (const path of ['a', 'b', 'c']) publisher.publish(changeOf(path));
    reader.drain();
    expect(reported).to.deep.equal([changeOf('a'), changeOf('b'), changeOf('c')]);
  });

  it('reports `everything` once for all changes that were not posted, because it lagged', () => {
    const { port, publisher, reader, reported } = channel({ lagMax: 2 });
    for (let count = 0; count < 1000; count++) publisher.publish(changeOf('a'));
    expect(port, 'messages that wait').to.have.length(2);
    reader.drain();
    expect(reported).to.deep.equal([changeOf('a'), changeOf('a'), 'everything']);
    publisher.publish(changeOf('b'));
    reader.drain();
    expect(reported.at(-1), 'after it has caught up').to.deep.equal(changeOf('b'));
  });

  it('reports a gap before the reply that shows a state after it', () => {
    const { port, publisher, reader, reported } = channel({ lagMax: 0 });
    publisher.publish(changeOf('a'));
    port.push({ kind: 'reply', number: publisher.number, id: 1, result: { kind: 'value', value: undefined } });
    const [reply] = port;
    if (reply !== undefined) reader.take(reply);
    expect(reported).to.deep.equal(['everything']);
  });

  it('does not let a watcher drain, because it would report a later change first', () => {
    const { publisher, reader } = channel({ onChanges: () => reader.drain() });
    publisher.publish(changeOf('a'));
    publisher.publish(changeOf('b'));
    expect(() => reader.drain()).to.throw('must not drain');
  });
});
