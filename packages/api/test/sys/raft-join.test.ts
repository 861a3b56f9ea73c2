import { expect } from 'chai';
import { type Served, served } from '../served.ts';

describe('sys/storage/raft/join', () => {
  let node: Served;
  before(async () => {
    node = await served();
  });
  after(() => node.close());

  for (const address of ['0', 'n1', 'n1:8200', 'ftp://n1:8200', 'https://u:p@n1:8200', 'https://n1:8200/v1', 'https://', false]) {
    it(`refuses ${JSON.stringify(address)} as a client error: it is not a URL`, async () => {
      const { status, body } = await node.ask('POST sys/storage/raft/join', { token: null, body: { leader_api_addr: address } });
      expect(status).to.equal(400);
      expect(body.errors).to.deep.equal(['leader_api_addr is not an address such as https://n1.example:8200']);
    });
  }
});
