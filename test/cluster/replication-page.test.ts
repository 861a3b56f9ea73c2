// @live
// The commands of docs/replication.md, as they are written, with two clusters.
import { expect } from 'chai';
import { runBlocks, shellBlocks } from '../docs/page.ts';
import { freePort } from './harness/free-port.ts';
import { LiveCluster } from './harness/live-cluster.ts';
import { scenarioMs } from './harness/scenario.ts';
import { until } from './harness/until.ts';

/** A program in place of `transitd`: the first change is made, and its answer is lost; after that, there is nothing left to change. */
const losingAnAnswer = (command: string, mode: string): string => `
case $2 in
  status) printf 'Key    Value\\n---    -----\\nMode   %s\\n' "$(cat mode)";;
  ${command}) echo ${mode} > mode; exit 2;;
esac
`;

describe('docs/replication.md', function () {
  this.timeout(scenarioMs);
  const clusters: LiveCluster[] = [];
  after(async () => {
    for (const cluster of clusters) await cluster.end();
  });

  for (const [heading, command, mode] of [
    ['Hand over, as a drill or for maintenance', 'promote', 'primary'],
    ['Leave the set', 'disable-secondary', 'disabled'],
  ] as const)
    it(`has a loop that ends although the answer of ${command} is lost`, async () => {
      const { code, stdout } = await runBlocks(shellBlocks('docs/replication.md', heading), {
        replace: { transitd: 'sh ./program' },
        files: { program: losingAnAnswer(command, mode), mode: 'secondary', 'east.token': 't', 'west.token': 't' },
      });
      expect([code, stdout.match(/^Mode .*$/m)?.[0]]).to.deep.equal([0, `Mode   ${mode}`]);
    });

  it('has commands that set up a secondary, hand over, fail over, fail back and leave the set', async () => {
    for (let at = 0; at < 2; at++) {
      const address = `127.0.0.1:${await freePort('127.0.0.1')}`;
      const config = { cluster_addr: address, cluster_listen: address };
      clusters.push(await LiveCluster.formed({ size: 1, seal: 'shamir', config }));
    }
    const [east, west] = clusters;
    if (east === undefined || west === undefined) throw new TypeError('there are two clusters');
    const [first, second] = [east.node(1), west.node(1)];
    const dr = 'sys/replication/dr';
    const token = { token: east.rootToken };
    const reach = (node: typeof first, code: number) =>
      until(`health answers ${code}`, async () => (await node.health())?.code === code, {
        explain: () => `${east.tails()}\n${west.tails()}`,
      });
    const inSync = () =>
      until(
        'both clusters have the same records',
        async () => {
          const digests = await Promise.all(
            [first, second].map(async (node) => (await node.ask('GET', `${dr}/status`)).at('data.merkle_root')),
          );
          return digests[0] !== undefined && digests[0] === digests[1];
        },
        { explain: () => `${east.tails()}\n${west.tails()}` },
      );
    const asWritten = { 'https://east.example:8200': first.apiAddress, 'https://west.example:8200': second.apiAddress };
    const play = async (heading: string, replace: Readonly<Record<string, string>> = asWritten): Promise<string> => {
      const { code, stdout, stderr } = await runBlocks(shellBlocks('docs/replication.md', heading), {
        replace,
        files: {
          ...{ 'east.token': east.rootToken, 'west.token': west.rootToken },
          ...{ 'share-1': east.shares[0] ?? '', 'share-2': east.shares[1] ?? '' },
        },
      });
      expect(code, `${heading}: ${stdout}${stderr}`).to.equal(0);
      return stdout;
    };

    const key = (name: string) => ['POST', `transit/keys/${name}`, {}] as const;
    expect((await east.askWhenLed(first, ...key('before'), token)).status).to.be.lessThan(300);
    await play('Set up');
    await reach(second, 472);
    await inSync();
    await play('Key material');
    const setting = (await first.ask('GET', `${dr}/status`)).at('data.acknowledge');
    expect(setting).to.deep.equal({ mode: 'key_material', timeout_ms: 5000, on_timeout: 'refuse' });
    expect((await east.askWhenLed(first, ...key('acknowledged'), token)).status).to.be.lessThan(300);
    const off = await east.ask(first, 'POST', `${dr}/primary/acknowledge`, { acknowledge: 'none' }, token);
    expect(off.status, off.text).to.equal(204);

    await play('Hand over, as a drill or for maintenance');
    await reach(second, 200);
    await reach(first, 472);
    expect((await west.askWhenLed(second, ...key('handed-over'), token)).status).to.be.lessThan(300);
    await inSync();

    // The page loses the site east: hand over back to it first.
    expect((await west.askWhenLed(second, 'POST', `${dr}/primary/demote`, {}, token)).status).to.equal(204);
    await until('east is promoted', async () => {
      const { status } = await east.ask(first, 'POST', `${dr}/secondary/promote`, {}, token);
      return status === 200;
    });
    const again = await east.ask(first, 'POST', `${dr}/primary/secondary-token`, { id: 'west' }, token);
    const followed = await west.ask(second, 'POST', `${dr}/secondary/enable`, { token: again.string('data.token') }, token);
    expect(followed.status, followed.text).to.equal(204);
    await inSync();

    await first.kill();
    expect(await play('Fail over')).to.match(/^position +\d+$/m);
    await reach(second, 200);
    const created = await west.askWhenLed(second, ...key('failed-over'), token);
    expect(created.status, created.text).to.be.lessThan(300);

    await first.start();
    await east.unseal(first);
    await reach(first, 472);
    await play('Fail back');
    await inSync();
    const keys = (await second.ask('LIST', 'transit/keys', token)).at('data.keys');
    expect(keys).to.include.members(['before', 'handed-over', 'failed-over']);

    // The sites have changed their roles since the page began.
    await play('Leave the set', {
      'https://east.example:8200': second.apiAddress,
      'https://west.example:8200': first.apiAddress,
      'revoke-secondary west': 'revoke-secondary east',
    });
    await reach(first, 200);
    expect((await second.health())?.code, 'its former primary serves on').to.equal(200);
  });
});
