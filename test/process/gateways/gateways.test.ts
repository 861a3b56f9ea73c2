// @live
// A node with gateway threads (decision 105): no request on any thread misses a change that was answered before it began.
import { expect } from 'chai';
import { changedCopy } from '../../changed-copy.ts';
import { until } from '../../cluster/harness/until.ts';
import { processMs, Workbench } from '../live-server.ts';
import { answeredByGateways, contradictions, ofGateways, startNode } from './clients.ts';
import { Connection } from './connection.ts';
import { delays, faults } from './faults.ts';

describe('a node with two gateways', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  afterEach(() => bench.clean());

  it('obeys each answered change on all threads', async () => {
    const node = await startNode(bench);
    expect(await contradictions(node, { rounds: 2 })).to.deep.equal([]);
    expect(await answeredByGateways(node)).to.be.above(100);
  });

  it('obeys each answered change on all threads while ports and drains are delayed', async () => {
    const node = await startNode(bench, await changedCopy(bench.folder(), delays));
    expect(await contradictions(node, { rounds: 1 })).to.deep.equal([]);
    expect(await answeredByGateways(node)).to.be.above(50);
  });

  for (const [name, fault] of Object.entries(faults)) {
    it(`shows a planted fault: ${name}`, async () => {
      const node = await startNode(
        bench,
        await changedCopy(bench.folder(), [fault, ...delays.filter(({ find }) => !find.includes(fault.find))]),
      );
      // Whether a round shows it depends on which thread answers when.
      expect(await contradictions(node, { rounds: 20, untilFound: true })).not.to.deep.equal([]);
    });
  }

  it('answers health on gateways, with the body of the main thread', async () => {
    const node = await startNode(bench);
    const connections = Array.from({ length: 12 }, () => new Connection(node.server.url, ''));
    // A gateway passes a probe on while the main thread is late to renew its lease.
    await until('a round of probes that the gateways do not pass on', async () => {
      const before = await ofGateways(node, 'passed');
      const answers = await Promise.all(connections.map((each) => each.call('GET', 'sys/health')));
      const bodies = answers.map(({ text }) => ({ ...JSON.parse(text), server_time_utc: 0, last_wal: 0 }));
      for (const body of bodies) expect(body).to.deep.equal(bodies[0]);
      expect([...new Set(answers.map(({ status }) => status))]).to.deep.equal([200]);
      return (await ofGateways(node, 'passed')) === before;
    });
    for (const connection of connections) connection.close();
  });

  it('answers nothing on any thread once it is sealed, and serves again once it is unsealed', async () => {
    const { server, rootToken, unsealKey } = await startNode(bench);
    const connections = Array.from({ length: 12 }, () => new Connection(server.url, rootToken));
    const health = async (): Promise<number[]> => {
      const answers = await Promise.all(connections.map((each) => each.call('GET', 'sys/health')));
      return [...new Set(answers.map(({ status }) => status))];
    };
    const statuses = async (): Promise<number[]> => {
      const answers = connections.map((each) => each.call('POST', 'transit/encrypt/shared', { plaintext: 'aGVsbG8=' }));
      return [...new Set((await Promise.all(answers)).map(({ status }) => status))];
    };
    for (let round = 0; round < 3; round++) {
      expect(await statuses()).to.deep.equal([200]);
      await connections[round]?.data('PUT', 'sys/seal');
      expect(await statuses()).to.deep.equal([503]);
      expect(await health()).to.deep.equal([503]);
      await connections[round]?.data('PUT', 'sys/unseal', { key: unsealKey });
    }
    for (const connection of connections) connection.close();
  });
});
