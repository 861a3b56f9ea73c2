// The processes that the benchmark starts by itself: a node and the bare echo server.
import { type ChildProcess, execFileSync, fork, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ApiServer, valueAt } from './api-server.ts';

const entry = join(import.meta.dirname, '../../packages/server/transitd.mjs');
const listening = /"address":"(https?:[^"]+)","msg":"listening"/;

export class OwnProcesses {
  readonly #children: ChildProcess[] = [];
  readonly #folders: string[] = [];

  constructor() {
    process.once('exit', () => {
      for (const child of this.#children) child.kill('SIGKILL');
      this.#removeFolders();
    });
  }

  /** Starts a `--dev` node. With TLS or audit, which `--dev` lacks, starts a node with a configuration file and the same seal. */
  async startNode({ tls, audit }: { readonly tls: boolean; readonly audit: boolean }): Promise<ApiServer> {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-bench-'));
    this.#folders.push(folder);
    const isDev = !tls && !audit;
    const certificate = tls ? makeCertificate(folder) : undefined;
    const command = isDev
      ? ['--dev', '--data-dir', folder, '--listen', '127.0.0.1:0']
      : ['--config', writeConfiguration(folder, { certificate, audit })];
    // The same Node options as in `npm start`.
    const options = ['--disable-sigusr1', '--max-semi-space-size=8'];
    const child = spawn(process.execPath, [...options, entry, 'server', ...command], {
      env: {
        ...withoutSettings(process.env),
        TRANSITD_LOG_FORMAT: 'json',
        TRANSITD_LOG_LEVEL: 'info',
        BENCH_SEAL_KEY: newSealKey(),
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#children.push(child);
    const url = await listeningUrl(child);
    const authority = certificate && readFileSync(certificate.cert_file, 'utf8');
    const server = { name: 'ours', url, pid: child.pid, authority };
    if (isDev) return new ApiServer({ ...server, token: readFileSync(join(folder, 'dev/root-token'), 'utf8').trim() });
    const shares = { recovery_shares: 1, recovery_threshold: 1 };
    const initialized = await new ApiServer({ ...server, token: '' }).call('PUT', 'sys/init', shares);
    return new ApiServer({ ...server, token: String(valueAt(initialized, 'root_token')) });
  }

  async startEcho(): Promise<ApiServer> {
    const child = fork(new URL('echo-server.ts', import.meta.url));
    this.#children.push(child);
    const [port] = await once(child, 'message');
    return new ApiServer({ name: 'echo', url: `http://127.0.0.1:${port}`, token: '', pid: child.pid });
  }

  async stop(): Promise<void> {
    for (const child of this.#children.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    }
    this.#removeFolders();
  }

  #removeFolders(): void {
    for (const folder of this.#folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  }
}

interface Certificate {
  readonly cert_file: string;
  readonly key_file: string;
}

/** Writes the configuration of a node that unseals itself. Returns its path. */
function writeConfiguration(
  folder: string,
  { certificate, audit }: { readonly certificate: Certificate | undefined; readonly audit: boolean },
): string {
  const file = join(folder, 'transitd.json');
  const listener = { address: '127.0.0.1:0', ...(certificate ? { tls: certificate } : { tls_disable: true }) };
  const configuration = {
    node_id: 'bench',
    data_dir: join(folder, 'data'),
    listeners: [listener],
    seal: { type: 'static', key_id: 'bench', key_env: 'BENCH_SEAL_KEY' },
    ...(audit && { audit: [{ type: 'file', name: 'bench', path: join(folder, 'audit.log') }] }),
  };
  writeFileSync(file, JSON.stringify(configuration), { mode: 0o600 });
  return file;
}

/** Removes transitd's settings, so that those of another node do not apply. */
const withoutSettings = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('TRANSITD_')));

const newSealKey = (): string => randomBytes(32).toString('base64');

/** Makes a key and a self-signed certificate for the loopback address with the command `openssl`. */
function makeCertificate(folder: string): Certificate {
  const [key_file, cert_file] = [join(folder, 'tls.key'), join(folder, 'tls.crt')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-days', '2', '-subj', '/CN=bench', '-addext', 'subjectAltName=IP:127.0.0.1'];
  execFileSync('openssl', ['req', '-x509', ...curve, ...subject, '-keyout', key_file, '-out', cert_file], { stdio: 'ignore' });
  return { key_file, cert_file };
}

/** Waits for the log line with the node's address. Keeps reading the log afterwards, because a full pipe would block the node. */
function listeningUrl(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let log = '';
    let isFound = false;
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      if (isFound) return;
      log += text;
      const url = listening.exec(log)?.[1];
      if (url === undefined) return;
      isFound = true;
      resolve(url);
    });
    child.once('exit', () => reject(new Error(`the node ended before it listened:\n${log}`)));
  });
}
