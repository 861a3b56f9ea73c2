// A node with gateway threads (decision 105): no request on any thread misses a change that was answered before it began.
import { expect } from 'chai';
import { processMs, Workbench } from '../live-server.ts';
import { changedCopy, delays, faults } from './changed-copy.ts';
import { answeredByGateways, contradictions, startNode } from './clients.ts';
import { Connection } from './connection.ts';

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
    const node = await startNode(bench, changedCopy(bench.folder(), delays));
    expect(await contradictions(node, { rounds: 1 })).to.deep.equal([]);
    expect(await answeredByGateways(node)).to.be.above(50);
  });

  for (const [name, fault] of Object.entries(faults)) {
    it(`shows a planted fault: ${name}`, async () => {
      const node = await startNode(
        bench,
        changedCopy(bench.folder(), [fault, ...delays.filter(({ find }) => !find.includes(fault.find))]),
      );
      expect(await contradictions(node, { rounds: 1 })).not.to.deep.equal([]);
    });
  }

  it('answers nothing on any thread once it is sealed, and serves again once it is unsealed', async () => {
    const { server, rootToken, unsealKey } = await startNode(bench);
    const connections = Array.from({ length: 12 }, () => new Connection(server.url, rootToken));
    const statuses = async (): Promise<number[]> => {
      const answers = connections.map((each) => each.call('POST', 'transit/encrypt/shared', { plaintext: 'aGVsbG8=' }));
      return [...new Set((await Promise.all(answers)).map(({ status }) => status))];
    };
    for (let round = 0; round < 3; round++) {
      expect(await statuses()).to.deep.equal([200]);
      await connections[round]?.data('PUT', 'sys/seal');
      expect(await statuses()).to.deep.equal([503]);
      await connections[round]?.data('PUT', 'sys/unseal', { key: unsealKey });
    }
    for (const connection of connections) connection.close();
  });
});
