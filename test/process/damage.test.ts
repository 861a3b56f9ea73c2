// @live
// A node finds a changed disk when it starts, reports it in one sentence, and serves nothing from it.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect } from 'chai';
import { pino } from 'pino';
import { Node } from '../../packages/node/src/node.ts';
import { prepareDev } from '../../packages/server/src/dev.ts';
import { playsAll } from '../runs.ts';
import { base64, processMs, Workbench } from './live-server.ts';

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .toSorted();

function flip(file: string, at: number): void {
  const bytes = readFileSync(file);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 0x10, at);
  writeFileSync(file, bytes);
}

/** Returns the length of the used part: a changed zero after the end of a log damages nothing. */
function usedBytes(file: string): number {
  const bytes = readFileSync(file);
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end -= 1;
  return end;
}

describe('a damaged data directory', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  it('is refused with exit code 74 and one sentence, or opens with every key, and nothing in between', async function () {
    this.timeout(4 * processMs);
    const sound = bench.folder();
    const first = await bench.start({ dataDir: sound });
    for (const name of ['a', 'b', 'c']) expect((await first.call('POST', `transit/keys/${name}`, {})).status).to.equal(200);
    const plaintext = base64('kept');
    const ciphertext = (await first.call('POST', 'transit/encrypt/b', { plaintext })).string('data.ciphertext');
    await first.stop();

    const files = filesIn(join(sound, 'data')).filter((name) => !/(^|\/)(lock|LOCK|LOG|LOG\.old|ballast)(\/|$)/.test(name));
    const damages: { what: string; apply(folder: string): void }[] = files.flatMap((name) => {
      const used = usedBytes(join(sound, 'data', name));
      const places = (playsAll ? [0.1, 0.5, 0.9] : [0.5]).map((share) => Math.floor(used * share));
      return [
        ...places.map((at) => ({
          what: `${name}: bit flipped at ${at}`,
          apply: (folder: string) => flip(join(folder, name), at),
        })),
        { what: `${name}: cut in half`, apply: (folder: string) => truncateSync(join(folder, name), Math.floor(used / 2)) },
        { what: `${name}: removed`, apply: (folder: string) => rmSync(join(folder, name)) },
      ];
    });
    expect(files).to.have.length.at.least(5);

    let refused = 0;
    for (const { what, apply } of damages) {
      const dataDir = bench.folder();
      execFileSync('cp', ['-pR', `${sound}/.`, dataDir]); // with the modes: copies that others can read are refused
      apply(join(dataDir, 'data'));
      const server = bench.launch({ dataDir });
      const outcome = await Promise.race([server.exited, server.ready()]);
      if (outcome === server) {
        // No damage: the change hit a spare copy, or the log restored the records. Then everything is there.
        const read = await server.call('LIST', 'transit/keys');
        expect(read.status === 200 && read.at('data.keys'), `${what}: ${read.text}`).to.deep.equal(['a', 'b', 'c']);
        expect((await server.call('POST', 'transit/decrypt/b', { ciphertext })).at('data.plaintext'), what).to.equal(plaintext);
        await server.stop();
      } else {
        refused += 1;
        expect(await server.exited, `${what}: ${server.stderr}`).to.deep.include({ code: 74 });
        const line = server.stderr.split('\n').find((text) => text.includes('"level":"fatal"')) ?? '';
        const { reason } = JSON.parse(line) as { reason: string };
        expect(reason, what).to.match(/^[^\n]+\.$/);
        expect(reason, what).to.include(relative('/', dataDir).split('/').at(-1));
      }
      rmSync(dataDir, { recursive: true });
    }
    expect(refused, 'damages found').to.be.greaterThan(damages.length / 2);
  });

  it('ends a dev node with exit code 1 if its services cannot be loaded from records that its key opens', async function () {
    this.timeout(processMs);
    const dataDir = bench.folder();
    const { config, dev } = prepareDev({ dataDir });
    const node = await Node.open({ config, log: pino({ level: 'silent' }), onFatal: () => undefined });
    await node.initialize({ recoveryShares: 1, recoveryThreshold: 1 }, dev.rootToken);
    await node.member?.barrier.store.commit({ conditions: [], writes: [{ path: 'core/mounts', value: Buffer.from('{}') }] });
    await node.stop();

    const server = bench.launch({ dataDir });
    expect(await server.exited, server.stderr).to.deep.include({ code: 1 });
    const lines = server.stderr.split('\n').filter((line) => /could not be (loaded|read)/.test(line));
    expect(lines).to.have.lengthOf(2);
    expect(lines[0]).to.include('"reason":"the record core/mounts has an unknown format"');
    expect(lines[1]).to.include(`the records in ${join(dataDir, 'data')} could not be read, so this node would stay sealed: `);
    expect(server.stdout).not.to.include('unsealed');
  });
});
