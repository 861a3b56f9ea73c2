// @live
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClusterError } from '@transitd/cluster';
import { type Config, parseConfig } from '@transitd/configuration';
import { expect } from 'chai';
import { pino } from 'pino';
import { configuredTarget } from '../src/join/joining.ts';
import { JoinAttempts } from '../src/join-attempts.ts';
import type { Phases } from '../src/phases.ts';

type Host = ConstructorParameters<typeof JoinAttempts>[0];

describe('JoinAttempts with retry_join', () => {
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'transitd-join-'));
    writeFileSync(join(folder, 'ca.pem'), 'nobody');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const configWith = (changed: object = {}) =>
    parseConfig({
      node_id: 'n1',
      data_dir: folder,
      listeners: [{ address: '127.0.0.1:0', tls_disable: true }],
      cluster_addr: 'n1.example:8201',
      retry_join: ['https://127.0.0.1:1'],
      retry_join_ca_file: join(folder, 'ca.pem'),
      seal: { type: 'shamir' },
      ...changed,
    });

  /** Returns attempts of a node that is not a member and holds no node, except for these parts, and their log lines. */
  function attemptsWith({
    config = configWith(),
    directory,
    isMember = () => false,
    start = async () => undefined,
  }: {
    readonly config?: Config;
    readonly directory?: Partial<Host['directory']>;
    readonly isMember?: () => boolean;
    readonly start?: () => Promise<void>;
  }): { readonly joinAttempts: JoinAttempts; readonly lines: readonly string[] } {
    const lines: string[] = [];
    const log = pino({ level: 'silent' });
    const host = {
      config,
      opened: { seal: { type: 'shamir' as const }, providers: [] },
      log: Object.assign(Object.create(log), { info: (_: object, text: string) => lines.push(text) }),
      api: { url: 'http://127.0.0.1:2', isListening: true } as Host['api'],
      directory: { holdsNode: async () => false, ...directory } as Host['directory'],
    };
    const phases = {
      present: { kind: 'noCluster' },
      get member() {
        return isMember() ? {} : undefined;
      },
      leave: () => undefined,
      open: start,
    };
    const joinAttempts = new JoinAttempts(host, phases as unknown as Phases);
    return { joinAttempts, lines };
  }

  /** Retries once; returns the log lines. @param isInitialized - the node is initialized while it looks for what it holds */
  async function retried({ isInitialized }: { readonly isInitialized: boolean }): Promise<readonly string[]> {
    let isMember = false;
    const { joinAttempts, lines } = attemptsWith({
      isMember: () => isMember,
      directory: {
        holdsNode: async () => {
          isMember = isInitialized;
          return false;
        },
      },
    });
    await joinAttempts.retry();
    return lines;
  }

  it('asks to join, and logs a failure', async () => {
    expect(await retried({ isInitialized: false })).to.deep.equal([
      'this node has not joined a cluster yet; it retries every second',
    ]);
  });

  it('waits for no writer of a retry_join_ca_file that is a FIFO', async () => {
    const fifo = join(folder, 'fifo.pem');
    execFileSync('mkfifo', [fifo]);
    expect(() => configuredTarget(configWith({ retry_join_ca_file: fifo }))).to.throw(
      ClusterError,
      `retry_join_ca_file: ${fifo} is not a regular file`,
    );
  });

  it('logs a failure that repeats once, not each second', async () => {
    const { joinAttempts, lines } = attemptsWith({});
    for (let second = 0; second < 5; second++) await joinAttempts.retry();
    expect(lines).to.have.length(1);
  });

  it('does not ask when the node has been initialized in the meantime', async () => {
    expect(await retried({ isInitialized: true })).to.deep.equal([]);
  });

  it('lets an initialization wait for an attempt that the node makes by itself, and one initialization refuse another', async () => {
    const started = Promise.withResolvers<void>();
    const initialized = Promise.withResolvers<string>();
    const events: string[] = [];
    const { joinAttempts } = attemptsWith({
      directory: { holdsNode: async () => true },
      start: async () => {
        await started.promise;
        events.push('started');
        throw new Error('the port of the cluster is in use');
      },
    });
    const round = joinAttempts.retry();
    const first = joinAttempts.exclusively('initialized', async () => {
      events.push('initialized');
      return initialized.promise;
    });
    const second = joinAttempts.exclusively('initialized', async () => 'again').catch((error: Error) => error.message);
    started.resolve();
    expect(await second).to.equal('this node is already being initialized');
    initialized.resolve('token');
    expect([await first, events]).to.deep.equal(['token', ['started', 'initialized']]);
    await round;
  });

  it('lets a join request wait for such an attempt too, and does not call its address if the node is a member then', async () => {
    const started = Promise.withResolvers<void>();
    let isMember = false;
    const { joinAttempts } = attemptsWith({
      isMember: () => isMember,
      directory: { holdsNode: async () => true },
      start: async () => {
        await started.promise;
        isMember = true;
      },
    });
    const round = joinAttempts.retry();
    const request = joinAttempts.join({ leaders: ['https://127.0.0.1:1'] });
    started.resolve();
    expect(await request).to.deep.equal({ joined: true });
    await round;
  });

  it('calls the configured cluster between two requests, so that callers cannot keep this node from it', async () => {
    const calls: string[] = [];
    const serve = async (name: string): Promise<{ readonly server: Server; readonly url: string }> => {
      const server = createServer((_req, res) => {
        calls.push(name);
        res.writeHead(503).end();
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
    };
    const [configured, other] = [await serve('configured'), await serve('requested')];
    try {
      const { joinAttempts } = attemptsWith({ config: configWith({ retry_join: [configured.url] }) });
      for (let i = 0; i < 3; i++) await joinAttempts.join({ leaders: [other.url] }).catch(() => undefined);
      expect(calls).to.deep.equal(['configured', 'requested', 'configured', 'requested', 'configured', 'requested']);
    } finally {
      for (const { server } of [configured, other]) server.close();
    }
  });
});
