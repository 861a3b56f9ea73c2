import type { Message } from '@transitd/raft-core';
import { expect } from 'chai';
import type { NetworkFaults } from '../../../src/cluster/config/config.ts';
import { crc32c } from '../../../src/cluster/network/crc32c.ts';
import { SimNetwork } from '../../../src/cluster/network/network.ts';
import { Coverage, SimClock, SimRandom } from '../../../src/index.ts';

const quiet: NetworkFaults = {
  drop: 0,
  duplicate: 0,
  heavyTail: 0,
  replay: 0,
  corrupt: 0,
  reorder: false,
  delayMsMax: 10,
  codec: false,
};

function network(faults: Partial<NetworkFaults>, { hasStreams = false } = {}) {
  const clock = new SimClock();
  const coverage = new Coverage();
  const arrived: number[] = [];
  const links = new SimNetwork({ clock, random: new SimRandom(1), coverage, hasStreams }, { ...quiet, ...faults }, (message) => {
    if (message.type === 'Heartbeat') arrived.push(message.round);
  });
  const send = (count: number): void => {
    for (let round = 1; round <= count; round++) links.send(heartbeat(round));
  };
  return { clock, coverage, arrived, links, send };
}

const heartbeat = (round: number): Message => ({
  type: 'Heartbeat',
  from: 1,
  to: 2,
  term: 1,
  clusterId: 'c',
  session: 1,
  commit: 0,
  round,
  leaseMs: 150,
});
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

describe('SimNetwork', () => {
  it('delivers everything in order when all faults are off', () => {
    const { clock, arrived, send } = network({});
    send(50);
    clock.runFor(100);
    expect(arrived).to.deep.equal(upTo(50));
  });

  it('lets messages overtake each other but loses none if it only reorders', () => {
    const { clock, arrived, send } = network({ reorder: true, codec: true });
    send(50);
    clock.runFor(100);
    expect(arrived).not.to.deep.equal(upTo(50));
    expect(arrived.toSorted((a, b) => a - b)).to.deep.equal(upTo(50));
  });

  it('loses about as many as configured, and none once it is healed', () => {
    const { clock, arrived, links, send } = network({ drop: 0.5 });
    send(400);
    clock.runFor(100);
    expect(arrived.length).to.be.within(140, 260);
    links.heal();
    arrived.length = 0;
    send(50);
    clock.runFor(100);
    expect(arrived).to.deep.equal(upTo(50));
  });

  it('cuts one direction of a link, including the messages under way on it', () => {
    const { clock, arrived, links, send } = network({});
    send(3);
    links.cut(1, 2);
    clock.runFor(100);
    expect(arrived).to.deep.equal([]);
    expect([links.isCut(1, 2), links.isCut(2, 1)]).to.deep.equal([true, false]);
    links.mend(1, 2);
    send(1);
    clock.runFor(100);
    expect(arrived).to.deep.equal([1]);
  });

  it('delivers no corrupted frame, because the checksum finds it', () => {
    const { clock, arrived, coverage, send } = network({ corrupt: 1 });
    send(200);
    clock.runFor(1_000);
    expect(arrived).to.deep.equal([]);
    expect(coverage.counts().get('frame corrupted')).to.equal(200);
  });

  it('repeats messages much later', () => {
    const { clock, arrived, send } = network({ replay: 1 });
    send(10);
    clock.runFor(500);
    expect(arrived).to.have.length(10);
    clock.runFor(40_000);
    expect(arrived).to.have.length(20);
  });

  describe('with connections', () => {
    const onStreams = () => network({ reorder: true, drop: 0.5, duplicate: 0.5, replay: 0.5 }, { hasStreams: true });

    it('delivers everything once and in order', () => {
      const { clock, arrived, send } = onStreams();
      send(50);
      clock.runFor(40_000);
      expect(arrived).to.deep.equal(upTo(50));
    });

    it('holds back what is under way and what is sent later while a connection stalls', () => {
      const { clock, arrived, links, send } = onStreams();
      send(20);
      links.stall(1, 2, 500);
      clock.runFor(400);
      for (let round = 21; round <= 40; round++) links.send(heartbeat(round));
      expect(arrived).to.deep.equal([]);
      clock.runFor(200);
      expect(arrived).to.deep.equal(upTo(40));
    });

    it('loses what is behind some frame when a connection ends, and what is sent before the next', () => {
      const { clock, arrived, links, send } = onStreams();
      send(20);
      links.reconnect(1, 2, { kept: 5, reconnectMs: 100 });
      clock.runFor(50);
      links.send(heartbeat(21));
      clock.runFor(100);
      links.send(heartbeat(22));
      clock.runFor(100);
      expect(arrived).to.deep.equal([...upTo(5), 22]);
    });

    it('drops frames that arrive after the next connection was accepted', () => {
      const { clock, arrived, links, send } = onStreams();
      send(20);
      links.stall(1, 2, 500);
      links.reconnect(1, 2, { kept: 20, reconnectMs: 100 });
      clock.runFor(200);
      links.send(heartbeat(21));
      clock.runFor(600);
      expect(arrived).to.deep.equal([21]);
    });

    it('ends the connection of a link that is cut', () => {
      const { clock, arrived, links, send } = onStreams();
      send(3);
      links.cut(1, 2);
      clock.runFor(100);
      links.mend(1, 2);
      send(1);
      clock.runFor(100);
      expect(arrived).to.deep.equal([1]);
    });
  });
});

describe('crc32c', () => {
  it('gives the check value of the Castagnoli polynomial', () => {
    expect(crc32c(new TextEncoder().encode('123456789')).toString(16)).to.equal('e3069283');
  });
});
