// One node of a cluster under test. It can be killed, frozen, restarted and replaced, and keeps its name and address.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Answer, entry, LiveServer } from '../../process/live-server.ts';
import { SecretWatch } from '../../process/secret-watch.ts';
import type { LinkProxy } from './link-proxy.ts';
import { until } from './until.ts';

export interface HealthSeen {
  readonly code: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Headers;
}

export interface AskOptions {
  readonly body?: unknown;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Time-out of a request. The request then fails as if the network had failed. */
  readonly withinMs?: number;
}

export interface LiveNodeOptions {
  readonly name: string;
  /** Loopback address on which the node listens, and from which it calls the others. */
  readonly host: string;
  readonly apiAddress: string;
  readonly dataDir: string;
  readonly configFile: string;
  /** The proxy in front of the node's cluster port. */
  readonly proxy: LinkProxy;
  readonly env?: Readonly<Record<string, string>>;
  /** Secrets of the whole cluster: no node may write a secret that another node received. */
  readonly secrets?: SecretWatch;
}

const callMs = 60_000;

export class LiveNode {
  readonly name: string;
  readonly host: string;
  readonly apiAddress: string;
  readonly dataDir: string;
  readonly proxy: LinkProxy;
  readonly #configFile: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #secrets: SecretWatch;
  #server: LiveServer | undefined;
  #paused = false;
  /** The file that starts the installed release. */
  #program = entry;
  #log = '';

  constructor({ name, host, apiAddress, dataDir, configFile, proxy, env = {}, secrets }: LiveNodeOptions) {
    this.name = name;
    this.host = host;
    this.apiAddress = apiAddress;
    this.dataDir = dataDir;
    this.proxy = proxy;
    this.#configFile = configFile;
    this.#env = env;
    this.#secrets = secrets ?? new SecretWatch();
  }

  /** Whether the node's process exists, frozen or not. */
  get alive(): boolean {
    const child = this.#server?.child;
    return child !== undefined && child.exitCode === null && child.signalCode === null;
  }

  /** Whether the node's process exists and is not frozen. */
  get running(): boolean {
    return this.alive && !this.#paused;
  }

  /** Returns the log of all processes of this node so far. */
  get log(): string {
    return `${this.#log}${this.#server?.stderr ?? ''}`;
  }

  /** Returns the current process. @throws if no process runs */
  get server(): LiveServer {
    if (this.#server === undefined) throw new Error(`${this.name} was never started`);
    return this.#server;
  }

  /** Id of the current process. @throws if no process runs */
  get pid(): number {
    return Number(this.server.child.pid);
  }

  /**
   * Changes keys of the node's configuration file, for its next start; `undefined` removes a key.
   * @returns the content of the file before the change
   */
  configure(change: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
    const before: Readonly<Record<string, unknown>> = JSON.parse(readFileSync(this.#configFile, 'utf8'));
    writeFileSync(this.#configFile, JSON.stringify({ ...before, ...change }, undefined, 2));
    return before;
  }

  /** Starts a process on the node's data, without waiting until it listens. */
  launch(): LiveServer {
    if (this.alive) throw new Error(`${this.name} runs already`);
    this.#log = this.log;
    this.#paused = false;
    const command = ['server', '--config', this.#configFile];
    this.#server = new LiveServer({
      dataDir: this.dataDir,
      program: this.#program,
      command,
      env: this.#env,
      secrets: this.#secrets,
    });
    return this.#server;
  }

  /** Installs another release, or this one: the next process runs it. @param program - the file that starts it */
  install(program = entry): void {
    this.#program = program;
  }

  /** Starts the node and waits until it listens. */
  async start(): Promise<this> {
    await this.launch().ready();
    return this;
  }

  kill(): Promise<unknown> {
    return this.server.stop('SIGKILL');
  }

  /** Stops the node with SIGTERM. Returns its exit code and signal. */
  stop(): Promise<{ code: number | null; signal: NodeJS.Signals | null }> {
    return this.server.stop('SIGTERM');
  }

  pause(): void {
    this.server.child.kill('SIGSTOP');
    this.#paused = true;
  }

  resume(): void {
    this.server.child.kill('SIGCONT');
    this.#paused = false;
  }

  async restart(): Promise<this> {
    if (this.alive) await this.stop();
    return this.start();
  }

  /** Replaces the node by one with the same name and address and an empty disk. */
  async replace(): Promise<this> {
    if (this.alive) await this.kill();
    rmSync(this.dataDir, { recursive: true, force: true });
    return this.start();
  }

  /** Ends the node's process permanently, even if it is frozen. */
  async end(): Promise<void> {
    if (this.running) await this.server.keepMetrics();
    if (this.alive) await this.kill();
    else this.#server?.assertDiscreet();
  }

  /** @param path - below `/v1/`. @throws if no complete response arrives */
  async ask(method: string, path: string, { body, token, headers = {}, withinMs = callMs }: AskOptions = {}): Promise<Answer> {
    const response = await fetch(`${this.apiAddress}/v1/${path}`, {
      method,
      headers: { ...headers, ...(token !== undefined && { 'X-Service-Token': token }) },
      signal: AbortSignal.timeout(withinMs),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (token !== undefined) this.#secrets.add('a token', token);
    this.#secrets.learn(body);
    this.#secrets.learn(text);
    return new Answer(response.status, response.headers, text);
  }

  /** Returns the health response; undefined without an answer. @param query - with its question mark */
  async health(query = ''): Promise<HealthSeen | undefined> {
    if (!this.running) return undefined;
    try {
      const { status, headers, text } = await this.ask('GET', `sys/health${query}`);
      return { code: status, body: JSON.parse(text), headers };
    } catch {
      return undefined;
    }
  }

  /** Waits until health answers one of these codes. */
  async reaches(...codes: readonly number[]): Promise<HealthSeen> {
    let last: HealthSeen | undefined;
    return until(
      `${this.name} answers ${codes.join(' or ')} to health`,
      async () => {
        last = await this.health();
        return last !== undefined && codes.includes(last.code) && last;
      },
      { explain: () => `last: ${JSON.stringify(last)}\n${this.tail()}` },
    );
  }

  /** Returns the last lines of its log. */
  tail(lines = 15): string {
    return `${this.name}:\n${this.log.trimEnd().split('\n').slice(-lines).join('\n')}`;
  }
}
