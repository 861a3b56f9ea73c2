// @live
import { expect } from 'chai';
import { processMs, Workbench } from '../process/live-server.ts';
import { runBlocks, shellBlocks } from './page.ts';

const page = 'docs/first-steps.md';

describe(page, function () {
  this.timeout(processMs);
  const bench = new Workbench();
  after(() => bench.clean());

  it('has commands that take a newcomer from a node to a token of a program', async () => {
    const server = await bench.start({ dataDir: bench.folder() });
    // test/clients runs the section about programs.
    const programs = shellBlocks(page, 'From a program');
    const [start, ...steps] = shellBlocks(page).filter((block) => !programs.includes(block));
    expect(start).to.match(/^transitd server --dev/);
    const ran = await runBlocks([...steps, '! TRANSITD_TOKEN=$APP_TOKEN transitd key rotate orders'], {
      replace: { 'http://127.0.0.1:8200': server.url, 'transitd-dev/dev/root-token': 'root-token' },
      files: { 'root-token': server.rootToken },
    });
    expect(ran.code, ran.stdout + ran.stderr).to.equal(0);
    expect(ran.stdout.match(/^card 4111 1111$/gm)).to.have.length(3);
    expect(ran.stdout)
      .to.match(/^svc:v1:/m)
      .and.to.match(/^svc:v2:/m)
      .and.to.match(/"ciphertext":"svc:v1:/);
    expect(ran.stderr).to.include('permission denied');
  });
});
