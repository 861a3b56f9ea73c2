// The processes that the benchmark starts by itself: nodes and the bare echo server.
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '../../test/cluster/harness/until.ts';
import { entry } from '../../test/process/live-server.ts';
import { ApiServer } from './api-server.ts';

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

  /** Returns a temporary folder, which `stop` removes. */
  newFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-bench-'));
    this.#folders.push(folder);
    return folder;
  }

  /** Starts a `--dev` node on the data in a folder, and waits until it listens. @param from - the checkout to run; default: this one */
  async startDevNode(folder: string, { from }: { readonly from?: string | undefined } = {}): Promise<ApiServer> {
    const { url, pid } = await this.startNode(['--dev', '--data-dir', folder, '--listen', '127.0.0.1:0'], {}, from);
    const token = readFileSync(join(folder, 'dev/root-token'), 'utf8').trim();
    return new ApiServer({ name: 'ours', url, token, pids: [pid] });
  }

  /** Starts one node with the same Node options as `npm start`, and waits until it listens. */
  async startNode(command: readonly string[], environment: NodeJS.ProcessEnv = {}, from?: string): Promise<StartedNode> {
    const program = from === undefined ? entry : join(from, 'packages/server/transitd.mjs');
    const options = ['--disable-sigusr1', '--max-semi-space-size=8'];
    const child = spawn(process.execPath, [...options, program, 'server', ...command], {
      env: {
        MALLOC_ARENA_MAX: '2',
        ...withoutSettings(process.env),
        TRANSITD_LOG_FORMAT: 'json',
        TRANSITD_LOG_LEVEL: 'info',
        ...environment,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.#children.push(child);
    const url = await listeningUrl(child);
    if (child.pid === undefined) throw new Error('the node has no process id');
    return { url, pid: child.pid };
  }

  async startEcho(): Promise<ApiServer> {
    const child = fork(new URL('echo-server.ts', import.meta.url));
    this.#children.push(child);
    const [port] = await once(child, 'message');
    return new ApiServer({
      name: 'echo',
      url: `http://127.0.0.1:${port}`,
      token: '',
      pids: child.pid === undefined ? [] : [child.pid],
    });
  }

  async stop(): Promise<void> {
    await this.endAll();
    this.#removeFolders();
  }

  /** Ends the processes; their folders remain. */
  async endAll(): Promise<void> {
    for (const child of this.#children.splice(0)) await end(child);
  }

  /** Ends the processes with these ids; their folders remain. */
  async end(pids: readonly number[], signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    for (const child of this.#children) if (child.pid !== undefined && pids.includes(child.pid)) await end(child, signal);
  }

  #removeFolders(): void {
    for (const folder of this.#folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  }
}

export interface StartedNode {
  readonly url: string;
  readonly pid: number;
}

async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}

/** Removes transitd's settings, so that those of another node do not apply. */
const withoutSettings = (environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('TRANSITD_')));

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

/** Waits until the node is unsealed: active, or a standby that serves reads. @throws Error if it takes too long */
export const untilHealthy = (server: ApiServer): Promise<boolean> =>
  until(`${server.url} is healthy`, () =>
    server.call('GET', 'sys/health?perfstandbyok=true').then(
      () => true,
      () => false,
    ),
  );
