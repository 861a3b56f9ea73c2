// @live
// `transitd operator recover` on the data directory of one node: its refusals, its output, and the next start of the node.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { damageLog, generationsIn } from '../cluster/harness/disk-damage.ts';
import { base64, processMs, Workbench } from './live-server.ts';
import { expectCode, type Ran, run } from './transitd-command.ts';

const recover = (dataDir: string, out: string, ...more: string[]): Promise<Ran> =>
  run(['operator', 'recover', '--data-dir', dataDir, '--out', out, ...more]);

/** A failure is one line. */
function expectSentence(ran: Ran, code: number, pattern: RegExp): void {
  expectCode(ran, code);
  expect(ran.stderr)
    .to.match(/^transitd: [^\n]+\n$/)
    .and.match(pattern);
  expect(ran.stdout).to.equal('');
}

describe('transitd operator recover', function () {
  this.timeout(processMs);
  const bench = new Workbench();
  let home = '';
  let dataDir = '';
  let out = '';
  let ciphertext = '';
  beforeEach(async () => {
    home = bench.folder();
    dataDir = join(home, 'data');
    out = join(home, 'recovered.snap');
    const server = await bench.start({ dataDir: home });
    for (const name of ['a', 'b']) expect((await server.call('POST', `transit/keys/${name}`, {})).status).to.equal(200);
    ciphertext = (await server.call('POST', 'transit/encrypt/b', { plaintext: base64('kept') })).string('data.ciphertext');
    await server.stop('SIGKILL');
  });
  afterEach(() => bench.clean());

  /** Expects that the command has left no file in the node's directory. */
  const expectNothingWritten = (): void => {
    expect(readdirSync(home).filter((name) => name.startsWith('recovered'))).to.deep.equal([]);
  };

  it('writes a complete snapshot that only its owner can read, describes it, and the node starts as before', async () => {
    const told = expectCode(await recover(dataDir, out, '--format', 'json'), 0);
    const found = told.json<Record<string, number | string | null>>();
    expect(found, 'of what it read').not.to.have.property('known_missing');
    expect(found['node_id']).to.be.a('number');
    expect(found['last_index']).to.be.above(0);
    expect(found['beyond_commit']).to.equal(Number(found['last_index']) - Number(found['commit_index']));
    expect(told.stderr)
      .to.include(`acknowledged after entry ${found['last_index']} are missing`)
      .and.include('highest last_term');
    expect(statSync(out).mode & 0o777).to.equal(0o600);
    expect(readdirSync(home).filter((name) => name.startsWith('recovered'))).to.deep.equal(['recovered.snap']);
    const inspected = expectCode(await run(['operator', 'raft', 'snapshot', 'inspect', out, '--format', 'json']), 0);
    expect(inspected.json()).to.include({
      cluster_id: found['cluster_id'],
      index: found['last_index'],
      term: found['last_term'],
    });

    const server = await bench.start({ dataDir: home });
    expect((await server.call('POST', 'transit/decrypt/b', { ciphertext })).at('data.plaintext')).to.equal(base64('kept'));
    await server.stop();
  });

  it('is refused while a node runs on the directory', async () => {
    const server = await bench.start({ dataDir: home });
    expectSentence(await recover(dataDir, out), 1, /in use by another process: stop the node first$/m);
    expectSentence(await recover(dataDir, out, '--without-log'), 1, /in use by another process/);
    expect((await server.call('GET', 'transit/keys/a')).status).to.equal(200);
    expectNothingWritten();
  });

  it('never overwrites a file, complete or partial', async () => {
    for (const name of [out, `${out}.part`]) {
      writeFileSync(name, 'mine');
      expectSentence(await recover(dataDir, out), 1, name === out ? /already exists/ : /part exists: delete it/);
      expect(readFileSync(name, 'utf8')).to.equal('mine');
      rmSync(name);
    }
    symlinkSync(join(home, 'nowhere'), out);
    expectSentence(await recover(dataDir, out), 1, /already exists/);
    expect(readlinkSync(out)).to.equal(join(home, 'nowhere'));
    rmSync(out);
    expectNothingWritten();
    expectSentence(await recover(dataDir, join(home, 'nowhere/file')), 1, /cannot be used: ENOENT$/m);
  });

  for (const { what, harm, code, pattern } of [
    { what: 'nothing', harm: (dir: string) => rmSync(dir, { recursive: true }), code: 1, pattern: /holds no node$/m },
    {
      what: 'an empty folder',
      harm: (dir: string) => {
        rmSync(dir, { recursive: true });
        mkdirSync(dir, { mode: 0o700 });
      },
      code: 1,
      pattern: /holds no node$/m,
    },
    {
      what: 'a file',
      harm: (dir: string) => {
        rmSync(dir, { recursive: true });
        writeFileSync(dir, '');
      },
      code: 1,
      pattern: /cannot be used: ENOTDIR$/m,
    },
    {
      what: 'a folder that others can read',
      harm: (dir: string) => chmodSync(dir, 0o755),
      code: 1,
      pattern: /run chmod 0700 \S+$/m,
    },
    {
      what: 'a node.state that others can read',
      harm: (dir: string) => chmodSync(join(dir, 'node.state'), 0o644),
      code: 1,
      pattern: /run chmod 0600 \S+$/m,
    },
    {
      what: 'data without a node.state',
      harm: (dir: string) => rmSync(join(dir, 'node.state')),
      code: 74,
      pattern: /node\.state is missing although/,
    },
  ])
    it(`is refused for ${what}`, async () => {
      harm(dataDir);
      const before = existsSync(dataDir) && statSync(dataDir).isDirectory() && readdirSync(dataDir);
      expectSentence(await recover(dataDir, out), code, pattern);
      expect(existsSync(dataDir) && statSync(dataDir).isDirectory() && readdirSync(dataDir)).to.deep.equal(before);
      expectNothingWritten();
    });

  it('reports a damaged log, and takes only the records with --without-log', async () => {
    const server = await bench.start({ dataDir: home }); // applies the node's entries to the records
    await server.stop();
    damageLog(dataDir);
    expectSentence(await recover(dataDir, out), 74, /log\/\d+\.log .+\. Use --without-log to recover the records/);
    expectNothingWritten();
    const told = expectCode(await recover(dataDir, out, '--without-log', '--format=json'), 0);
    expect(told.json()).to.have.property('records').that.is.above(4);
    expectCode(await run(['operator', 'raft', 'snapshot', 'inspect', out]), 0);
  });

  it('reports damaged records, which nothing can replace', async () => {
    const server = await bench.start({ dataDir: home });
    await server.stop();
    const [generation = ''] = generationsIn(dataDir);
    const folder = join(dataDir, generation, 'state');
    const table = readdirSync(folder).find((name) => name.endsWith('.ldb')) ?? '';
    const bytes = readFileSync(join(folder, table));
    bytes.writeUInt8(bytes.readUInt8(bytes.length >> 2) ^ 1, bytes.length >> 2);
    writeFileSync(join(folder, table), bytes);
    for (const more of [[], ['--without-log']]) expectSentence(await recover(dataDir, out, ...more), 74, /generation-1\/state/);
    expectNothingWritten();
  });
});
