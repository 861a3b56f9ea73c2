import { expect } from 'chai';
import { Writes } from '../../src/driver/writes.ts';
import type { Message } from '../../src/types.ts';

const message = (round: number): Message => {
  return { from: 1, to: 2, term: 1, clusterId: 'c', session: 1, type: 'HeartbeatResp', round, fit: true };
};

describe('Writes', () => {
  it('hold the messages of a batch until it and all earlier ones are durable, whether or not it had anything to write', () => {
    const writes = new Writes();
    writes.begin(1, 0);
    writes.hold(1, [message(1)]);
    writes.hold(2, [message(2)]);
    writes.begin(3, 0);
    writes.hold(3, [message(3)]);
    expect(writes.release()).to.deep.equal([]);
    writes.end(1, 0);
    expect(writes.release()).to.deep.equal([message(1), message(2)]);
    expect(writes.release()).to.deep.equal([]);
    writes.end(3, 0);
    expect(writes.release()).to.deep.equal([message(3)]);
    writes.hold(4, [message(4)]);
    expect(writes.release()).to.deep.equal([message(4)]);
  });

  it('end in the order in which they began, or the log has broken its promise', () => {
    const writes = new Writes();
    writes.begin(1, 0);
    writes.begin(2, 0);
    expect(() => writes.end(2, 0)).to.throw(/in order/);
  });

  it('stall for as long as the oldest has been under way', () => {
    const writes = new Writes();
    expect(writes.stalledMs(10_000)).to.equal(0);
    writes.begin(1, 100);
    writes.begin(2, 900);
    expect(writes.stalledMs(1_000)).to.equal(900);
    writes.end(1, 0);
    expect(writes.stalledMs(1_000)).to.equal(100);
    writes.end(2, 0);
    expect(writes.stalledMs(1_000)).to.equal(0);
  });
});
