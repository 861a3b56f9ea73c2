// One node in its own container, with production settings: read-only, no capabilities, data in a volume.
import { join } from 'node:path';
import {
  GenericContainer,
  getContainerRuntimeClient,
  type StartedNetwork,
  type StartedTestContainer,
  Wait,
} from 'testcontainers';
import { patienceMs, until } from '../cluster/harness/until.ts';
import { Answer } from '../process/live-server.ts';
import { images } from './images.ts';

const root = join(import.meta.dirname, '../..');

/** Options that testcontainers does not offer. */
class ReadOnlyContainer extends GenericContainer {
  constructor(image: string) {
    super(image);
    this.hostConfig.ReadonlyRootfs = true;
  }
}

export interface NodeOptions {
  readonly name: string;
  readonly network: StartedNetwork;
  /** Folder with `seal.key`. */
  readonly secrets: string;
}

export class NodeContainer {
  readonly name: string;
  readonly #network: StartedNetwork;
  readonly #container: StartedTestContainer;

  private constructor({ name, network }: NodeOptions, container: StartedTestContainer) {
    this.name = name;
    this.#network = network;
    this.#container = container;
  }

  /** Creates a node with an empty volume. Resolves when it listens. */
  static async start(options: NodeOptions): Promise<NodeContainer> {
    const { name, network, secrets } = options;
    const container = await new ReadOnlyContainer(images().transitd)
      .withNetwork(network)
      .withNetworkAliases(name)
      .withDroppedCapabilities('ALL')
      .withSecurityOpt('no-new-privileges')
      .withBindMounts([
        { source: join(root, 'deploy/compose'), target: '/etc/transitd', mode: 'ro' },
        { source: secrets, target: '/run/demo', mode: 'ro' },
      ])
      .withEnvironment({
        TRANSITD_NODE_ID: name,
        TRANSITD_API_ADDR: `http://${name}:8200`,
        TRANSITD_CLUSTER_ADDR: `${name}:8201`,
      })
      .withWaitStrategy(Wait.forLogMessage(/"msg":"started"/))
      .start();
    return new NodeContainer(options, container);
  }

  /** Sends a request from outside. @throws if there is no answer: the node is stopped, paused or partitioned */
  async ask(
    method: string,
    path: string,
    { token, body, withinMs = 15_000 }: { readonly token?: string; readonly body?: unknown; readonly withinMs?: number } = {},
  ): Promise<Answer> {
    const response = await fetch(`http://${await this.#address()}:8200/v1/${path}`, {
      method,
      headers: token === undefined ? {} : { 'X-Service-Token': token },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(withinMs),
    });
    return new Answer(response.status, response.headers, await response.text());
  }

  /** Runs `transitd healthcheck` inside the container, which works for a partitioned node too. @returns exit code and output */
  async healthcheck(): Promise<{ readonly code: number; readonly text: string }> {
    const { exitCode, output } = await this.exec(['node', '/opt/transitd/packages/server/transitd.mjs', 'healthcheck']);
    return { code: exitCode, text: output };
  }

  exec(command: string[]): Promise<{ readonly exitCode: number; readonly output: string }> {
    return this.#container.exec(command);
  }

  /** Returns the status of `sys/health`; undefined without an answer. */
  async health(): Promise<number | undefined> {
    return (await this.ask('GET', 'sys/health').catch(() => undefined))?.status;
  }

  async reaches(code: number): Promise<void> {
    let last: number | undefined;
    await until(
      `${this.name} answers ${code} to health`,
      async () => {
        last = await this.health();
        return last === code;
      },
      { explain: () => `last: ${last}` },
    );
  }

  /** Waits until the image's health check has succeeded. */
  async expectHealthyToEngine(): Promise<void> {
    const handle = await this.#handle();
    let last: unknown;
    await until(
      `${this.name} is healthy to the engine`,
      async () => {
        const { Health } = (await handle.inspect()).State;
        last = Health;
        return Health?.Status === 'healthy';
      },
      { explain: () => JSON.stringify(last) },
    );
  }

  async kill(signal: string): Promise<void> {
    await (await this.#handle()).kill({ signal });
  }

  /** Resolves with the exit code when the container has ended. */
  async ended(): Promise<number> {
    return (await (await this.#handle()).wait()).StatusCode;
  }

  /** Starts the container again with the same volume. */
  async startAgain(): Promise<void> {
    await (await this.#handle()).start();
  }

  /** Pauses the container. Retries until that succeeds, because the kernel does not freeze a process that waits for its disk. */
  async pause(): Promise<void> {
    const container = await this.#handle();
    let refusal: unknown;
    await until(
      `${this.name} is paused`,
      async () => {
        refusal = await container.pause().then(
          () => undefined,
          (error) => error,
        );
        return refusal === undefined;
      },
      { explain: () => String(refusal) },
    );
  }

  async resume(): Promise<void> {
    await (await this.#handle()).unpause();
  }

  async disconnect(): Promise<void> {
    const { network } = await getContainerRuntimeClient();
    await network.getById(this.#network.getId()).disconnect({ Container: this.#container.getId(), Force: true });
  }

  async connect(): Promise<void> {
    const { network } = await getContainerRuntimeClient();
    const EndpointConfig = { Aliases: [this.name] };
    await network.getById(this.#network.getId()).connect({ Container: this.#container.getId(), EndpointConfig });
  }

  /** Removes the container with its volume. */
  async remove(): Promise<void> {
    await this.#container.stop({ timeout: patienceMs });
  }

  async #handle() {
    const { container } = await getContainerRuntimeClient();
    return container.getById(this.#container.getId());
  }

  /** A container gets another address at each start; on Linux the bridge is reachable from here. */
  async #address(): Promise<string> {
    const { NetworkSettings } = await (await this.#handle()).inspect();
    const address = NetworkSettings.Networks[this.#network.getName()]?.IPAddress;
    if (address === undefined || address === '') throw new Error(`${this.name} has no address`);
    return address;
  }
}
