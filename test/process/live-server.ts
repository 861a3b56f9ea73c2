// A real transitd process for tests: with its own data directory, on a free port, stopped by its process id.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { safety } from '../safety.ts';
import { SecretWatch } from './secret-watch.ts';
import { auditFilesOf, configurationOf, sealKeyOf } from './server-output.ts';

export const root = join(import.meta.dirname, '../..');
export const nodeBinary = join(root, 'node_modules/.bin/node');
/** The program: its sources, unless the suite has joined them (test/program.ts). */
export const entry = process.env['TEST_PROGRAM'] ?? join(root, 'packages/server/transitd.mjs');

/** Time-out of tests that start processes. It is generous: a test that takes this long has failed. */
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

  /** Returns the value at a path such as `data.keys.1` in the JSON body, or undefined. */
  at(path: string): unknown {
    let place: unknown = JSON.parse(this.text);
    for (const step of path.split('.'))
      place = typeof place === 'object' && place !== null ? Reflect.get(place, step) : undefined;
    return place;
  }

  /** Returns the string at that path. @throws if the path leads to no string */
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
  /** The file that starts `transitd`, of another release; by default of this one. */
  readonly program?: string;
  /** Arguments of `transitd`; default: a dev node on a free loopback port. */
  readonly command?: readonly string[];
  /** Secrets to search for; processes that know the same secrets share one object. */
  readonly secrets?: SecretWatch;
}

/** A page that needs no token and is served while the node is sealed. */
const telemetry = { TRANSITD_TELEMETRY_ADDRESS: '127.0.0.1:0' };
/** A gateway costs about a second of CPU time; nodes with a configuration, such as those of clusters, have the default number. */
const devNode = { TRANSITD_WORKERS: '0' };
/** The welcome of a dev node: the only place that shows a token on purpose. */
const welcome = /\ntransitd is running in dev mode, [\s\S]*?paste the ciphertext here…"}'\n/;
/** Generous: a page that comes late may contain a secret too. */
const metricsMs = 30_000;

export class LiveServer {
  readonly child: ChildProcess;
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Secrets that must not appear in anything this server writes. */
  readonly secrets: SecretWatch;
  readonly #dataDir: string;
  readonly #command: readonly string[];
  readonly #env: Readonly<Record<string, string>>;
  #metrics = '';
  #stderr = '';
  #stdout = '';
  #waiters: (() => void)[] = [];
  /** The process has ended, and all that it wrote was read. */
  #isClosed = false;
  url = '';

  constructor({ dataDir, args = [], env = {}, wrapper = [], program = entry, command, secrets }: StartOptions) {
    this.#dataDir = dataDir;
    this.secrets = secrets ?? new SecretWatch();
    this.#command = [...(command ?? ['server', '--dev', '--data-dir', dataDir, '--listen', '127.0.0.1:0']), ...args];
    this.#env = env;
    const line = [...wrapper, nodeBinary, program, ...this.#command];
    this.child = spawn(line[0] ?? '', line.slice(1), {
      env: {
        ...(this.#command.includes('--dev') && devNode),
        ...process.env,
        TRANSITD_LOG_FORMAT: 'json',
        TRANSITD_LOG_LEVEL: 'info',
        ...telemetry,
        ...env,
      },
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
        this.#isClosed = true;
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

  /** Waits for text in the log; fails at once if the process ends before. */
  async log(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.#stderr);
      if (match) return match;
      if (this.#isClosed) throw new Error(`the server ended:\n${this.#stderr}`);
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  /** Waits until the server listens and, if it is a dev node, until it serves. */
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
    const text = await response.text();
    if (token !== null) this.secrets.add('a token', token);
    this.secrets.learn(body);
    this.secrets.learn(text);
    return new Answer(response.status, response.headers, text);
  }

  /** Stops the server with a signal. @throws if the server has written a secret */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    if (signal === 'SIGTERM') await this.keepMetrics();
    this.child.kill(signal);
    const ended = await this.exited;
    this.assertDiscreet();
    return ended;
  }

  /** Keeps a copy of the server's metrics page, if that can be read. */
  async keepMetrics(): Promise<void> {
    const address = /"telemetry":"(http[^"]+)"/.exec(this.#stderr)?.[1];
    if (address === undefined || this.child.exitCode !== null || this.child.signalCode !== null) return;
    const page = fetch(`${address}/metrics`, { signal: AbortSignal.timeout(metricsMs) }).then((answer) => answer.text());
    this.#metrics += await page.catch(() => '');
  }

  /** @throws if its log, its audit or its metrics contain a secret of this server */
  assertDiscreet(): void {
    const configuration = configurationOf(this.#command);
    const sealKey = sealKeyOf(configuration, this.#env);
    if (sealKey !== undefined) this.secrets.add('the seal key', sealKey);
    for (const [name, what] of [
      ['dev/root-token', 'the root token'],
      ['dev/seal.key', 'the seal key'],
    ] as const) {
      const file = join(this.#dataDir, name);
      if (existsSync(file)) this.secrets.addEncoded(what, readFileSync(file, 'utf8').trim());
    }
    const found = [
      ...this.secrets.findings('the log', this.#stderr),
      ...this.secrets.findings('the standard output', this.#stdout.replace(welcome, '')),
      ...this.secrets.findings('the metrics', this.#metrics),
      ...auditFilesOf(configuration).flatMap((file) => this.secrets.findings(file, readFileSync(file))),
    ];
    if (found.length > 0) throw new Error(`${safety}: a secret was written:\n${found.join('\n')}`);
  }
}

/** Servers and folders of one test file; `clean` stops and removes the remaining ones. */
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
    const told: unknown[] = [];
    for (const server of this.#servers.splice(0)) {
      await server.keepMetrics();
      if (server.child.exitCode === null && server.child.signalCode === null) server.child.kill('SIGKILL');
      await server.exited;
      try {
        server.assertDiscreet();
      } catch (error) {
        told.push(error);
      }
    }
    if (told.length > 0) throw told[0];
  }

  async clean(): Promise<void> {
    try {
      await this.stopAll();
    } finally {
      for (const folder of this.#folders.splice(0)) rmSync(folder, { recursive: true, force: true });
    }
  }
}

export const base64 = (text: string): string => Buffer.from(text).toString('base64');
