// @live
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { runCommandLine } from '../src/command-line.ts';
import { noLocalWork } from './no-local-work.ts';

const secret = 's.the-token-of-the-caller';
const envelope = {
  request_id: 'r',
  lease_id: '',
  renewable: false,
  lease_duration: 0,
  data: null,
  wrap_info: null,
  warnings: null,
  auth: null,
};
const server: Server = createServer((req, res) => {
  req.resume();
  const auth = { client_token: secret, accessor: 'an-accessor', token_policies: ['p'], lease_duration: 60, renewable: true };
  const data = { id: secret, accessor: 'an-accessor', ttl: 60 };
  res.setHeader('Content-Type', 'application/json');
  res.end(JSON.stringify(req.url?.includes('renew') === true ? { ...envelope, auth } : { ...envelope, data }));
});

/** Returns what a command prints. */
async function printed(args: readonly string[]): Promise<string> {
  const { log } = console;
  const lines: string[] = [];
  console.log = (line: string) => lines.push(line);
  const before = { ...process.env };
  process.env['TRANSITD_ADDR'] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  process.env['TRANSITD_TOKEN'] = secret;
  try {
    await runCommandLine(args, noLocalWork);
  } finally {
    console.log = log;
    process.env = before;
  }
  return lines.join('\n');
}

describe('a token that the caller has', () => {
  before(() => once(server.listen(0, '127.0.0.1'), 'listening'));
  after(() => server.close());

  for (const command of ['token renew', 'token renew --increment 1h', 'token lookup'])
    it(`is not printed by ${command}, whose output may be in a journal`, async () => {
      const text = await printed(command.split(' '));
      expect(text).to.include('an-accessor').and.not.to.include(secret);
    });
});
