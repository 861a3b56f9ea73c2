// An etcd of one member on loopback, with its own data directory.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../../test/cluster/harness/free-port.ts';
import type { EtcdConnection } from '../src/client/connect-etcd.ts';
import { EtcdProcess } from './etcd-process.ts';

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

export interface LiveEtcdOptions {
  readonly tls?: LiveTls;
  /** Added to the arguments of etcd. */
  readonly args?: readonly string[];
}

/** Starts one etcd. */
export async function liveEtcd({ tls, args = [] }: LiveEtcdOptions = {}): Promise<LiveEtcd> {
  const folder = mkdtempSync(join(tmpdir(), 'etcd-'));
  const client = await freePort('127.0.0.1');
  const peerUrl = `http://127.0.0.1:${await freePort('127.0.0.1')}`;
  const endpoint = `${tls ? 'https' : 'http'}://127.0.0.1:${client}`;
  const files = tls?.files;
  const secured = files
    ? ['--client-cert-auth', '--trusted-ca-file', files.ca, '--cert-file', files.cert, '--key-file', files.key]
    : [];
  const etcd = new EtcdProcess({
    folder,
    args: [
      ...['--name', 'live', '--listen-client-urls', endpoint, '--advertise-client-urls', endpoint],
      ...['--listen-peer-urls', peerUrl, '--initial-advertise-peer-urls', peerUrl, '--initial-cluster', `live=${peerUrl}`],
      '--unsafe-no-fsync', // a kill loses nothing that the process has written
      ...secured,
      ...args,
    ],
    connection: { endpoint, timeoutMs: 5000, ...(tls && { tls: tls.client }) },
  });
  const start = async (): Promise<void> => {
    await etcd.launch();
    await etcd.serves();
  };
  await start();
  return {
    endpoint,
    kill: () => etcd.kill(),
    start,
    pause: () => etcd.pause(),
    resume: () => etcd.resume(),
    stop: async () => {
      await etcd.kill();
      rmSync(folder, { recursive: true });
    },
  };
}
