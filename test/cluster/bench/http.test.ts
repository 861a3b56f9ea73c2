// @live
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { nodeBinary, processMs, root, Workbench } from '../../process/live-server.ts';

const bench = new Workbench();
const requests = 120;
const number = String.raw`[\d,]+(?:\.\d+)?`;
/** CPU time of all three nodes, and of each. */
const ofThreeNodes = String.raw`${number}: ${number} \+ ${number} \+ ${number}`;
/** Matches a line with all its values; does not check how large they are. */
const values = (toPeer: string, cpu = number): RegExp =>
  new RegExp(
    [`${number}`, `${number}–${number}`, toPeer, number, number, cpu, number, number, String.raw`\d+ %(?: !)?`, '0']
      .join(String.raw` \| `)
      .replace(/^/, String.raw`^\| (?<row>[\w-]+) \| (?<server>\w+) \| `)
      .concat(String.raw` \|$`),
  );

async function run(...args: string[]): Promise<{ readonly table: string[]; readonly json: Record<string, unknown> }> {
  const out = bench.folder();
  const command = [join(root, 'bench/http.ts'), '--requests', String(requests), '--connections', '4', '--out', out, ...args];
  const { stdout } = await promisify(execFile)(nodeBinary, command);
  const names = readdirSync(out).sort();
  expect(names).to.have.length(2);
  expect(names[0]).to.match(/^\d{4}-\d\d-\d\d-\d{6}-http\.json$/);
  expect(names[1]).to.match(/^\d{4}-\d\d-\d\d-\d{6}-http\.md$/);
  const [json, markdown] = names.map((name) => readFileSync(join(out, name), 'utf8'));
  expect(stdout.trimEnd()).to.equal(markdown?.trimEnd());
  return { table: stdout.split('\n').filter((line) => line.startsWith('| ')), json: JSON.parse(json ?? '') };
}

describe('npm run bench', function () {
  this.timeout(processMs);
  after(() => bench.clean());

  it('starts a node, measures it beside the echo server, and writes the table as Markdown and JSON', async () => {
    const { table, json } = await run('--rows', 'health,random', '--rounds', '1');
    const lines = table.slice(2).map((line) => values('–').exec(line)?.groups ?? line);
    expect(lines.map((line) => ({ ...Object(line) }))).to.deep.equal([
      { row: 'health', server: 'ours' },
      { row: 'health', server: 'echo' },
      { row: 'random', server: 'ours' },
      { row: 'random', server: 'echo' },
    ]);
    expect(json['settings']).to.include({ connections: 4, rounds: 1, requests, tls: false, audit: false });
    expect(json['servers']).to.have.length(2);
    expect(json['lines']).to.have.length(4);
  });

  it('starts a cluster, and measures requests through the active node and through a standby', async () => {
    const { table, json } = await run('--nodes', '3', '--rows', 'health,key-create', '--rounds', '1');
    const cpuOf = (line: string): string => (line.includes('| echo |') ? number : ofThreeNodes);
    const lines = table.slice(2).map((line) => values('–', cpuOf(line)).exec(line)?.groups ?? line);
    expect(lines.map((line) => ({ ...Object(line) }))).to.deep.equal(
      ['health', 'key-create'].flatMap((row) => ['ours', 'standby', 'echo'].map((server) => ({ row, server }))),
    );
    expect(json['settings']).to.include({ nodes: 3 });
  });

  it('compares two running servers, and removes the keys from both', async () => {
    const servers = await Promise.all([0, 1].map(() => bench.start({ dataDir: bench.folder() })));
    const [ours, peer] = servers;
    if (ours === undefined || peer === undefined) throw new Error('two servers were started');
    const urls = ['--ours', ours.url, '--token', ours.rootToken, '--peer', peer.url, '--token', peer.rootToken];
    const pids = servers.flatMap(({ child }) => ['--pid', String(child.pid)]);
    const { table, json } = await run(...urls, ...pids, '--rows', 'key-create,verify-ed25519', '--rounds', '2');
    const lines = table.slice(2).map((line) => (values(number).exec(line) ?? values('–').exec(line))?.groups ?? line);
    expect(lines.map((line) => ({ ...Object(line) }))).to.deep.equal(
      ['verify-ed25519', 'key-create'].flatMap((row) => ['ours', 'peer', 'echo'].map((server) => ({ row, server }))),
    );
    for (const server of servers) {
      expect(JSON.stringify(json)).to.not.include(server.rootToken);
      const mounts = (await server.call('GET', 'sys/mounts')).at('data');
      expect(Object.keys(Object(mounts))).to.include('transit/');
      expect(Object.keys(Object(mounts)).filter((name) => name.startsWith('bench-'))).to.deep.equal([]);
    }
  });
});
