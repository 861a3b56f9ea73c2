import { expect } from 'chai';
import { type RealNode, realNode } from '../real-node.ts';

describe('an unknown parameter of a read or a list', () => {
  let real: RealNode;
  before(async () => {
    real = await realNode();
  });
  after(() => real.close());

  it('is named in every response that has an envelope, and in every refusal', async () => {
    const unread = ['sys/monitor', 'sys/storage/raft/snapshot', 'sys/health', 'sys/internal/ui/mounts'];
    const paths = real.routes.filter(({ path }) => !/[:*]/.test(path) && !unread.includes(path));
    let enveloped = 0;
    for (const { path, operations } of paths)
      for (const verb of ['GET', 'LIST'] as const) {
        if (operations[verb] === undefined) continue;
        const query = `${verb === 'LIST' ? 'list=true&' : ''}unheard=1`;
        const response = await fetch(`${real.url}/${path}?${query}`, { headers: { 'X-Service-Token': real.rootToken } });
        const text = await response.text();
        const isEnvelope = response.ok && text.startsWith('{') && 'request_id' in JSON.parse(text);
        if (isEnvelope || response.status === 404) expect(text, `${verb} ${path}`).to.include('[unheard]');
        if (isEnvelope) enveloped += 1;
      }
    expect(enveloped).to.be.above(20);
  });
});
