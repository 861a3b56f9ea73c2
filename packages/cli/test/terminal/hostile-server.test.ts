// @live
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { runCommandLine } from '../../src/command-line.ts';
import { noLocalWork } from '../no-local-work.ts';

/** Clears the screen, sets the title and the clipboard, reverses the line, hides text. */
const hostile =
  'a\u001b[2J\u001b]0;title\u0007\u001b]52;c;eA==\u0007\u009b2J\u009d0;x\u009c\u202e\u2066\u200f\u2028\u{e0041}\r\b\u007f';
const controls = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** Answers every request with hostile text wherever a server may put text of its own. */
const server: Server = createServer((req, res) => {
  req.resume();
  const fails = req.url?.includes('fails') === true;
  const auth = { client_token: hostile, accessor: hostile, token_policies: [hostile], metadata: { [hostile]: hostile } };
  const plaintext = Buffer.from(hostile).toString('base64');
  const data = {
    value: hostile,
    [hostile]: [hostile],
    keys: [hostile],
    policy: hostile,
    plaintext,
    nested: { [hostile]: hostile },
  };
  const body = fails
    ? { errors: [hostile] }
    : {
        ...{ request_id: 'r', data, warnings: [hostile], auth: req.url?.includes('login') ? auth : null },
        paths: { '/x': { get: { summary: hostile, description: hostile } } },
      };
  res.statusCode = fails ? 400 : 200;
  if (req.url?.includes('monitor') || req.url?.includes('health')) res.end(`${hostile}\n`);
  else res.setHeader('Content-Type', 'application/json').end(JSON.stringify(body));
});

/** Runs a command; returns what it wrote on standard output and standard error. */
async function run(args: readonly string[], { isTTY }: { readonly isTTY: boolean }): Promise<{ out: string; all: string }> {
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const written: { readonly stream: object; readonly text: string }[] = [];
  const restore = [process.stdout, process.stderr].map((stream) => {
    const [write, was] = [stream.write, stream.isTTY];
    stream.write = ((text: string | Uint8Array, ...more: unknown[]) => {
      written.push({ stream, text: Buffer.from(text).toString() });
      const done = more.at(-1);
      if (typeof done === 'function') done();
      return true;
    }) as typeof stream.write;
    stream.isTTY = isTTY;
    return () => Object.assign(stream, { write, isTTY: was });
  });
  const { TRANSITD_ADDR } = process.env;
  process.env['TRANSITD_ADDR'] = address;
  process.env['TRANSITD_TOKEN'] = 't';
  try {
    await runCommandLine(args, noLocalWork);
  } finally {
    for (const back of restore) back();
    if (TRANSITD_ADDR === undefined) delete process.env['TRANSITD_ADDR'];
    else process.env['TRANSITD_ADDR'] = TRANSITD_ADDR;
    delete process.env['TRANSITD_TOKEN'];
  }
  const textOf = (on?: object) =>
    written.flatMap(({ stream, text }) => (on === undefined || stream === on ? [text] : [])).join('');
  return { out: textOf(process.stdout), all: textOf() };
}

describe('text of a hostile server', () => {
  before(() => once(server.listen(0, '127.0.0.1'), 'listening'));
  after(() => server.close());

  for (const command of [
    'read x',
    'read --format json x',
    'read --field value x',
    'read --format json --field value x',
    'read fails',
    'read --format json fails',
    'list x',
    'list --format json x',
    'write login a=b',
    'policy read x',
    'key decrypt x vault:v1:AAAA',
    'monitor',
    'monitor --format json',
    'path-help x',
    'doctor',
    'status',
    'audit list',
  ])
    it(`cannot control the terminal: transitd ${command}`, async () => {
      const { all } = await run(command.split(' '), { isTTY: true });
      expect(all).not.to.equal('');
      expect(all).not.to.match(controls);
    });

  it('keeps its value in JSON', async () => {
    const { out } = await run(['read', '--format', 'json', 'x'], { isTTY: true });
    expect(JSON.parse(out).data).to.include({ value: hostile });
  });

  it('is exact in one field and in a plaintext when standard output is no terminal', async () => {
    expect((await run(['read', '--field', 'value', 'x'], { isTTY: false })).out).to.equal(hostile);
    expect((await run(['key', 'decrypt', 'x', 'vault:v1:AAAA'], { isTTY: false })).out).to.equal(hostile);
  });

  it('passes through print.ts alone: other files write nothing but questions and progress', () => {
    const source = join(import.meta.dirname, '../../src');
    const writers = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && /console\.|process\.(?:stdout|stderr)/.test(readFileSync(join(source, file), 'utf8')),
    );
    expect(writers.toSorted()).to.deep.equal([
      'commands/monitor.ts',
      'terminal/confirm.ts',
      'terminal/input.ts',
      'terminal/output.ts',
      'terminal/print.ts',
      'terminal/progress.ts',
    ]);
  });
});
