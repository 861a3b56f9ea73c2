import { expect } from 'chai';
import { encodeNodeRecord } from '../../src/registered/node-record.ts';
import { RegisteredNodes } from '../../src/registered/registered-nodes.ts';
import { clusterId, testCluster } from '../credentials.ts';

describe('the nodes that have registered', () => {
  it('have one name each: a namesake at another address is found, but not a former run of the same node', async () => {
    const cluster = await testCluster();
    const { identity } = await cluster.node(1);
    const at = { apiAddress: 'http://10.0.0.1:8200', clusterAddress: '10.0.0.1:8201' };
    const record = encodeNodeRecord(identity, { name: 'n1', ...at, levels: { oldest: 1, newest: 1 } });
    const nodes = new RegisteredNodes(clusterId, { nodes: new Map([[1, record]]) });
    const { authority } = cluster;
    const own = { id: 2, name: 'n1', clusterAddress: '10.0.0.2:8201' };
    expect(nodes.namesakeOf(own, authority)?.id).to.equal(1);
    expect(nodes.namesakeOf({ ...own, clusterAddress: at.clusterAddress }, authority)).to.equal(undefined);
    expect(nodes.namesakeOf({ ...own, name: 'n2' }, authority)).to.equal(undefined);
    expect(nodes.namesakeOf({ ...own, id: 1 }, authority)).to.equal(undefined);
  });
});
