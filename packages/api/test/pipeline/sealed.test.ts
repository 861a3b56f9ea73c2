import { expect } from 'chai';
import { type RealNode, realNode } from '../real-node.ts';

describe('a request to a sealed node', () => {
  let api: RealNode;
  before(async () => {
    api = await realNode();
    await api.node.seal();
  });
  after(() => api.close());

  for (const line of [
    'GET transit/keys/k',
    'GET nowhere',
    'POST auth/userpass/login/u',
    'POST sys/wrapping/unwrap',
    'POST sys/wrapping/lookup',
    'GET sys/internal/ui/mounts',
    'GET sys/generate-root/attempt',
    'POST sys/generate-root/attempt',
    'POST sys/generate-root/update',
  ])
    it(`is refused because the node is sealed, with or without a token: ${line}`, async () => {
      const [method = '', path = ''] = line.split(' ');
      for (const headers of [{}, { 'X-Service-Token': api.rootToken }]) {
        const response = await fetch(`${api.url}/${path}`, { method, headers, ...(method === 'POST' && { body: '{}' }) });
        expect([response.status, await response.json()]).to.deep.equal([503, { errors: ['transitd is sealed'] }]);
      }
    });
});
