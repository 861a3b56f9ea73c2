// A real transitd process for tests: its own data directory, a free port, ended by its id.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '../..');
export const nodeBinary = join(root, 'node_modules/.bin/node');
export const entry = join(root, 'packages/server/transitd.mjs');

/** For a test that starts processes. Generous: who takes this long has failed, not been slow. */
export const processMs = 300_000;

export class Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;

  constructor(status: number, headers: Headers, text: string) {
    this.status = status;
    this.headers = headers;
    this.text = text;
  }

  /** What lies at `data.keys.1` and the like in the JSON body; nothing when there is no such place. */
  at(path: string): unknown {
    let place: unknown = JSON.parse(this.text);
    for (const step of path.split('.'))
      place = typeof place === 'object' && place !== null ? Reflect.get(place, step) : undefined;
    return place;
  }

  /** The string at that place. @throws when there is none */
  string(path: string): string {
    const value = this.at(path);
    if (typeof value !== 'string') throw new Error(`no string at ${path} in ${this.status} ${this.text}`);
    return value;
  }
}

export interface StartOptions {
  readonly dataDir: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Command that runs the server, e.g. `['strace', '-f', …]` or `['sh', '-c', 'ulimit -f 100; exec "$@"', 'sh']`. */
  readonly wrapper?: readonly string[];
  /** Arguments of `transitd`; a dev node on a free loopback port unless given. */
  readonly command?: readonly string[];
}

export class LiveServer {
  readonly child: ChildProcess;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  readonly #dataDir: string;
  #stderr = '';
  #stdout = '';
  #waiters: (() => void)[] = [];
  url = '';

  constructor({ dataDir, args = [], env = {}, wrapper = [], command }: StartOptions) {
    this.#dataDir = dataDir;
    const line = [
      ...wrapper,
      nodeBinary,
      entry,
      ...(command ?? ['server', '--dev', '--data-dir', dataDir, '--listen', '127.0.0.1:0']),
      ...args,
    ];
    this.child = spawn(line[0] ?? '', line.slice(1), {
      env: { ...process.env, TRANSITD_LOG_FORMAT: 'json', TRANSITD_LOG_LEVEL: 'info', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#stdout += text;
      this.#wake();
    });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
      this.#wake();
    });
    this.exited = new Promise((resolve) => {
      this.child.on('close', (code, signal) => {
        resolve({ code, signal });
        this.#wake();
      });
    });
  }

  get stderr(): string {
    return this.#stderr;
  }

  get stdout(): string {
    return this.#stdout;
  }

  get rootToken(): string {
    return readFileSync(join(this.#dataDir, 'dev/root-token'), 'utf8').trim();
  }

  #wake(): void {
    for (const waiter of this.#waiters.splice(0)) waiter();
  }

  /** Waits for text in the log; fails at once when the process ends before. */
  async log(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.#stderr);
      if (match) return match;
      if (this.child.exitCode !== null || this.child.signalCode !== null) throw new Error(`the server ended:\n${this.#stderr}`);
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  /** Waits until it listens and, for a dev node, serves. */
  async ready(): Promise<this> {
    const match = await this.log(/"address":"(http[^"]+)","msg":"listening"/);
    this.url = match[1] ?? '';
    return this;
  }

  async call(method: string, path: string, body?: unknown, token: string | null = this.rootToken): Promise<Answer> {
    const response = await fetch(`${this.url}/v1/${path}`, {
      method,
      headers: token === null ? {} : { 'X-Service-Token': token },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    return new Answer(response.status, response.headers, await response.text());
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    this.child.kill(signal);
    return this.exited;
  }
}

/** Servers and folders of one test file; `clean` ends and removes whatever is left. */
export class Workbench {
  readonly #servers: LiveServer[] = [];
  readonly #folders: string[] = [];

  folder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'transitd-test-'));
    this.#folders.push(folder);
    return folder;
  }

  launch(options: StartOptions): LiveServer {
    const server = new LiveServer(options);
    this.#servers.push(server);
    return server;
  }

  start(options: StartOptions): Promise<LiveServer> {
    return this.launch(options).ready();
  }

  async stopAll(): Promise<void> {
    for (const server of this.#servers.splice(0)) {
      if (server.child.exitCode === null && server.child.signalCode === null) await server.stop('SIGKILL');
    }
  }

  async clean(): Promise<void> {
    await this.stopAll();
    for (const folder of this.#folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  }
}

export const base64 = (text: string): string => Buffer.from(text).toString('base64');
