// Starts and stops the demonstration of docker-compose.yml as a user would, on free ports.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../cluster/harness/free-port.ts';
import { until } from '../cluster/harness/until.ts';
import { Answer } from '../process/live-server.ts';
import { images } from './images.ts';
import { compose } from './needs.ts';

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);

export const nodes = ['n1', 'n2', 'n3'] as const;
export type NodeName = (typeof nodes)[number];

/** Front ends, by the variables of docker-compose.yml for their ports. */
const ports = {
  any: 'DEMO_PORT',
  leader: 'DEMO_LEADER_PORT',
  haproxy: 'DEMO_HAPROXY_PORT',
  prometheus: 'DEMO_PROMETHEUS_PORT',
} as const;
export type Way = keyof typeof ports;

export class Demo {
  readonly #project = `transitd-e2e-${process.pid}`;
  readonly #ports: Readonly<Record<Way, number>>;
  readonly #env: NodeJS.ProcessEnv;
  #rootToken = '';

  private constructor(found: Readonly<Record<Way, number>>) {
    this.#ports = found;
    const { transitd, haproxy, prometheus } = images();
    this.#env = { ...process.env, DEMO_NODE_IMAGE: transitd, DEMO_HAPROXY_IMAGE: haproxy, DEMO_PROMETHEUS_IMAGE: prometheus };
    for (const [way, variable] of Object.entries(ports)) this.#env[variable] = String(found[way as Way]);
  }

  /** Resolves when the demonstration reports that it is ready. */
  static async start(): Promise<Demo> {
    const [any = 0, leader = 0, haproxy = 0, prometheus = 0] = await Promise.all([1, 2, 3, 4].map(() => freePort('127.0.0.1')));
    const demo = new Demo({ any, leader, haproxy, prometheus });
    try {
      await demo.up();
      demo.#rootToken = (await demo.compose('exec', '-T', 'n1', 'cat', '/run/demo/root-token')).trim();
      return demo;
    } catch (error) {
      await demo.end().catch(() => undefined); // the first error is the useful one
      throw error;
    }
  }

  get rootToken(): string {
    return this.#rootToken;
  }

  /** Starts the services that are not running. Resolves with the output of `init` when every node serves. */
  async up(): Promise<string> {
    await this.compose('up', '--detach', '--no-build');
    const init = await this.container('init');
    await until(
      'the demonstration is ready',
      async () => (await this.docker('inspect', '--format', '{{.State.Status}}', init)) === 'exited',
    );
    const said = await this.compose('logs', '--no-color', 'init');
    const code = await this.docker('inspect', '--format', '{{.State.ExitCode}}', init);
    if (code !== '0') throw new Error(`the demonstration was not initialized, exit code ${code}:\n${said}`);
    return said;
  }

  /** Returns the output of a compose command. @throws with its error output */
  async compose(...args: string[]): Promise<string> {
    const [program = '', ...first] = compose ?? [];
    return (await run(program, [...first, '--project-name', this.#project, ...args], { cwd: root, env: this.#env })).stdout;
  }

  async docker(...args: string[]): Promise<string> {
    return (await run('docker', args, { env: this.#env })).stdout.trim();
  }

  /** Returns the id of a service's container, running or not. */
  async container(service: string): Promise<string> {
    const labels = [`com.docker.compose.project=${this.#project}`, `com.docker.compose.service=${service}`];
    return this.docker('ps', '--all', '--quiet', ...labels.flatMap((label) => ['--filter', `label=${label}`]));
  }

  url(way: Way): string {
    return `http://127.0.0.1:${this.#ports[way]}`;
  }

  /** Sends a request with the root token through HAProxy. @throws if the connection breaks */
  async ask(way: 'any' | 'leader', method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await fetch(`${this.url(way)}/v1/${path}`, {
      method,
      headers: { 'X-Service-Token': this.#rootToken },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(30_000),
    });
    return new Answer(response.status, response.headers, await response.text());
  }

  /** Returns the name of the active node. */
  async leader(): Promise<NodeName> {
    const found = await until('one node leads', async () => {
      const answer = await this.ask('leader', 'GET', 'sys/leader').catch(() => undefined);
      return answer?.status === 200 && nodes.find((name) => answer.at('leader_address') === `http://${name}:8200`);
    });
    return found;
  }

  async end(): Promise<void> {
    await this.compose('down', '--volumes', '--timeout', '5');
  }
}
