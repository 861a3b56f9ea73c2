// @live
// A node whose configuration has no console answers below /ui/ as on any other unknown path.
import { expect } from 'chai';
import { processMs, Workbench } from '../process/live-server.ts';

describe('a node without the console', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  after(() => bench.clean());

  it('answers below /ui/ exactly as on any unknown path', async () => {
    const server = await bench.start({ dataDir: bench.folder(), env: { TRANSITD_UI: 'false' } });
    const answer = async (path: string, method: string) => {
      const response = await fetch(`${server.url}${path}`, { method, redirect: 'manual' });
      const headers = [...response.headers].filter(([name]) => name !== 'date');
      return { status: response.status, headers, text: await response.text() };
    };
    for (const method of ['GET', 'POST'])
      for (const path of ['', '/', '/index.js', '/x'])
        expect(await answer(`/ui${path}`, method), `${method} ${path}`).to.deep.equal(await answer(`/xy${path}`, method));
    expect((await answer('/ui/', 'GET')).status).to.equal(404);
  });

  it('has it with --dev, unless the environment turns it off', async () => {
    const server = await bench.start({ dataDir: bench.folder() });
    expect((await fetch(`${server.url}/ui/`)).status).to.equal(200);
    const { headers } = await fetch(`${server.url}/v1/sys/health`);
    expect(headers.get('content-security-policy'), 'of the API').to.equal(null);
  });
});
