// A real etcd on loopback, with its own data directory.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../../test/cluster/harness/free-port.ts';
import { connectEtcd, type EtcdConnection } from '../src/client/connect-etcd.ts';

export interface LiveEtcd {
  readonly endpoint: string;
  /** Ends the process as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on the same data and the same port. */
  start(): Promise<void>;
  /** Stops the process without ending it, as a suspended machine would. */
  pause(): void;
  resume(): void;
  /** Ends the process, and deletes its data. */
  stop(): Promise<void>;
}

/** PEM files of a server that requires certificates of its clients, and the same for a client. */
export interface LiveTls {
  readonly files: { readonly ca: string; readonly cert: string; readonly key: string };
  readonly client: NonNullable<EtcdConnection['tls']>;
}

/** Starts one etcd. It needs Debian's etcd-server, and fails without it. */
export async function liveEtcd(tls?: LiveTls): Promise<LiveEtcd> {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-'));
  const client = await freePort('127.0.0.1');
  const peer = await freePort('127.0.0.1');
  const endpoint = `${tls ? 'https' : 'http'}://127.0.0.1:${client}`;
  const files = tls?.files;
  const secured = files
    ? ['--client-cert-auth', '--trusted-ca-file', files.ca, '--cert-file', files.cert, '--key-file', files.key]
    : [];
  let running: ChildProcess | undefined;

  async function start(): Promise<void> {
    const log = join(folder, 'log');
    const peerUrl = `http://127.0.0.1:${peer}`;
    const output = openSync(log, 'a');
    const child = spawn(
      'etcd',
      [
        ...['--name', 'live', '--data-dir', join(folder, 'data'), '--logger', 'zap', '--log-outputs', 'stderr'],
        ...secured,
        '--unsafe-no-fsync', // a kill loses nothing that the process has written
        ...['--listen-client-urls', endpoint, '--advertise-client-urls', endpoint],
        ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl, '--initial-cluster', `live=${peerUrl}`],
      ],
      { stdio: ['ignore', 'ignore', output] },
    );
    closeSync(output);
    const failed = once(child, 'error').then(([error]) => Promise.reject(error));
    await Promise.race([once(child, 'spawn'), failed]);
    failed.catch(() => undefined);
    running = child;
    await answers({ endpoint, timeoutMs: 5000, ...(tls && { tls: tls.client }) }, child, log);
  }

  async function kill(): Promise<void> {
    const child = running;
    running = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  await start();
  return {
    endpoint,
    kill,
    start,
    pause: () => void running?.kill('SIGSTOP'),
    resume: () => void running?.kill('SIGCONT'),
    stop: async () => {
      await kill();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Resolves when etcd answers a linearizable read, so it has a leader. */
async function answers(connection: EtcdConnection, child: ChildProcess, log: string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`etcd has ended:\n${readFileSync(log, 'utf8')}`);
    const etcd = connectEtcd(connection);
    try {
      await etcd.range({ key: 'ready' });
      return;
    } catch {
      await delay(50);
    } finally {
      etcd.close();
    }
  }
}
