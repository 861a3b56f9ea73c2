import { expect } from 'chai';
import { continuedRights } from '../../src/operation/continued-rights.ts';

describe('the right to read on in a stream', () => {
  it('ends with the certificate to which the token is bound', async () => {
    let nowMs = 0;
    const principal = { root: true, record: { boundCidrs: [], boundCertificate: 'ab' } };
    const tokens = {
      authenticate: () => principal,
      get nowMs() {
        return nowMs;
      },
    };
    const services = { tokens };
    const context = { node: { services }, services, token: 't' } as unknown as Parameters<typeof continuedRights>[0];
    const certificate = { sha256: 'ab', expiresMs: 10, der: Buffer.alloc(0), chains: [] };
    const mayContinue = continuedRights(context, { path: 'sys/monitor', address: '127.0.0.1', certificate }, 'read');
    expect(await mayContinue()).to.equal(true);
    nowMs = 10;
    expect(await mayContinue()).to.equal(false);
  });
});
