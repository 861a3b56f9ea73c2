import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseConfig } from '@transitd/configuration';
import { expect } from 'chai';
import { pino } from 'pino';
import { JoinAttempts, type JoinAttemptsParts } from '../../src/join/join-attempts.ts';

describe('the entrance of a node that is configured to join', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-entrance-'));
    writeFileSync(join(folder, 'ca.pem'), 'nobody');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Tries once, and tells what was said of a join. @param foundsItself - somebody initialises the node while it looks where to ask */
  async function tried({ foundsItself }: { readonly foundsItself: boolean }): Promise<readonly string[]> {
    const said: string[] = [];
    const log = pino({ level: 'silent' });
    const config = parseConfig({
      node_id: 'n1',
      data_dir: folder,
      listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
      cluster_addr: 'n1.example:8201',
      retry_join: ['https://127.0.0.1:1'],
      retry_join_ca_file: join(folder, 'ca.pem'),
      seal: { type: 'shamir' },
    });
    let isMember = false;
    const directory: Partial<JoinAttemptsParts['directory']> = {
      holdsNode: async () => {
        setImmediate(() => {
          isMember = foundsItself;
        });
        return false;
      },
    };
    const joinAttempts = new JoinAttempts({
      config,
      seal: { type: 'shamir' },
      directory: directory as JoinAttemptsParts['directory'],
      log: Object.assign(Object.create(log), { info: (_: object, text: string) => said.push(text) }),
      apiAddress: () => 'http://127.0.0.1:2',
      isListening: () => true,
      isMember: () => isMember,
      start: async () => undefined,
    });
    await joinAttempts.again();
    return said;
  }

  it('asks to be let in', async () => {
    expect(await tried({ foundsItself: false })).to.deep.equal(['not joined yet']);
  });

  it('does not when the node has founded a cluster meanwhile', async () => {
    expect(await tried({ foundsItself: true })).to.deep.equal([]);
  });
});
