// One node in a container of its own, as an operator would run it: read-only, no capabilities, its data in a volume.
import { join } from 'node:path';
import {
  GenericContainer,
  getContainerRuntimeClient,
  type StartedNetwork,
  type StartedTestContainer,
  Wait,
} from 'testcontainers';
import { patienceMs, until } from '../cluster/until.ts';
import { Answer } from '../process/live-server.ts';
import { images } from './images.ts';

const root = join(import.meta.dirname, '../..');

/** Testcontainers has no words for this. */
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

  /** With an empty volume. Resolves as soon as it listens. */
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

  /** Asks it from outside. @throws when it does not answer, as one that is stopped, paused or cut off does not */
  async ask(
    method: string,
    path: string,
    { token, body }: { readonly token?: string; readonly body?: unknown } = {},
  ): Promise<Answer> {
    const response = await fetch(`http://${await this.#address()}:8200/v1/${path}`, {
      method,
      headers: token === undefined ? {} : { 'X-Service-Token': token },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(15_000),
    });
    return new Answer(response.status, response.headers, await response.text());
  }

  /** What it says of itself, asked inside the container: cut off from the network too. @returns exit code and output */
  async healthcheck(): Promise<{ readonly code: number; readonly text: string }> {
    const { exitCode, output } = await this.exec(['node', '/opt/transitd/packages/server/transitd.mjs', 'healthcheck']);
    return { code: exitCode, text: output };
  }

  exec(command: string[]): Promise<{ readonly exitCode: number; readonly output: string }> {
    return this.#container.exec(command);
  }

  /** The code of `sys/health`; undefined when there is no answer. */
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

  /** By the health check of the image: `starting`, `healthy` or `unhealthy`. */
  async engineHealth(): Promise<string | undefined> {
    return (await (await this.#handle()).inspect()).State.Health?.Status;
  }

  async kill(signal: string): Promise<void> {
    await (await this.#handle()).kill({ signal });
  }

  /** Resolves with the exit code when it has ended. */
  async ended(): Promise<number> {
    return (await (await this.#handle()).wait()).StatusCode;
  }

  /** With the volume that it had. */
  async startAgain(): Promise<void> {
    await (await this.#handle()).start();
  }

  /** The kernel does not freeze a process that waits for the disk at that moment: the engine is asked until it could. */
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

  /** With its volume. */
  async remove(): Promise<void> {
    await this.#container.stop({ timeout: patienceMs });
  }

  async #handle() {
    const { container } = await getContainerRuntimeClient();
    return container.getById(this.#container.getId());
  }

  /** A container has another address after each start; on Linux the bridge is reached from here. */
  async #address(): Promise<string> {
    const { NetworkSettings } = await (await this.#handle()).inspect();
    const address = NetworkSettings.Networks[this.#network.getName()]?.IPAddress;
    if (address === undefined || address === '') throw new Error(`${this.name} has no address`);
    return address;
  }
}
