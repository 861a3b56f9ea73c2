import { expect } from 'chai';
import { makeAuthority, makeRequest, signRequest } from '../../src/membership/authority.ts';
import { encodeNodeRecord, readNodeRecord } from '../../src/registered/node-record.ts';

const clusterId = '0f5c0c1e-8a0b-4f6e-9d0a-000000000001';
const facts = {
  name: 'n7',
  apiAddress: 'https://n7.example:8200',
  clusterAddress: 'n7.example:8201',
  levels: { oldest: 2, newest: 5 },
};

async function recordOf({ nodeId = 7, inCluster = clusterId, about = facts } = {}) {
  const authority = await makeAuthority(inCluster, new Date());
  const { key, request } = await makeRequest(nodeId);
  const certificate = await signRequest(authority, { request, now: new Date(), clusterId: inCluster, nodeId });
  return { authority, record: encodeNodeRecord({ key, certificate }, about) };
}

const changed = (record: Uint8Array, change: (fields: Record<string, string>) => object): Uint8Array =>
  Buffer.from(JSON.stringify(change(JSON.parse(Buffer.from(record).toString()))));

describe('the record of a node', () => {
  const name = { nodeId: 7, clusterId };

  it('names the node, its addresses, its feature levels and its certificate', async () => {
    const { authority, record } = await recordOf();
    const node = readNodeRecord(record, name, authority);
    expect(node).to.deep.include({ id: 7, ...facts });
    expect(node?.certificate).to.match(/^[0-9a-f]{64}$/);
  });

  it('is ignored without feature levels', async () => {
    const { levels: _none, ...about } = facts;
    const { authority, record } = await recordOf({ about: about as typeof facts });
    expect(readNodeRecord(record, name, authority)).to.equal(undefined);
  });

  it('is ignored if an address in it was changed', async () => {
    const { authority, record } = await recordOf();
    const forged = changed(record, (fields) => ({
      ...fields,
      facts: fields['facts']?.replace('n7.example:8201', 'evil.example:1'),
    }));
    expect(readNodeRecord(forged, name, authority)).to.equal(undefined);
  });

  it('is ignored if another authority signed its certificate', async () => {
    const { record } = await recordOf();
    const { authority } = await recordOf();
    expect(readNodeRecord(record, name, authority)).to.equal(undefined);
  });

  it('is ignored at the key of another node, and in another cluster', async () => {
    const { authority, record } = await recordOf();
    expect(readNodeRecord(record, { nodeId: 8, clusterId }, authority)).to.equal(undefined);
    expect(readNodeRecord(record, { nodeId: 7, clusterId: 'another' }, authority)).to.equal(undefined);
  });

  it('is ignored if the facts of one node are signed with the key of another', async () => {
    const { authority, record } = await recordOf();
    const other = await recordOf();
    const mixed = changed(record, (fields) => ({
      ...fields,
      signature: JSON.parse(Buffer.from(other.record).toString()).signature,
    }));
    expect(readNodeRecord(mixed, name, authority)).to.equal(undefined);
  });

  it('is ignored if it is malformed', async () => {
    const { authority, record } = await recordOf();
    const noAddress = await recordOf({ about: { ...facts, clusterAddress: 'no port' } });
    expect(readNodeRecord(noAddress.record, name, noAddress.authority)).to.equal(undefined);
    for (const bytes of [Buffer.alloc(0), Buffer.from('null'), Buffer.from('{}'), record.subarray(0, 100)])
      expect(readNodeRecord(bytes, name, authority)).to.equal(undefined);
  });
});
