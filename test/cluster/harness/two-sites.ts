// Two clusters that replicate: the steps of an operator, and a load of writes.
import { indexIn } from '@transitd/http';
import type { Answer } from '../../process/live-server.ts';
import { LiveCluster } from './live-cluster.ts';
import type { LiveNode } from './live-node.ts';
import { until } from './until.ts';

const dr = 'sys/replication/dr';
/** From where the nodes of one cluster call the proxies of the other one. */
export const callerAddress = '127.0.0.1';

export const formSite = (size: number): Promise<LiveCluster> =>
  LiveCluster.formed({ size, seal: 'shamir', guests: [callerAddress] });

/** Codes of all nodes, in order: 473 and 429 of standbys too. */
export const codesOf = (site: LiveCluster): Promise<readonly (number | undefined)[]> =>
  Promise.all(site.nodes.map(async (node) => (node.alive ? (await node.health())?.code : undefined)));

/** Two clusters. All tokens and shares are those of the first primary, as soon as the second one has its state. */
export class TwoSites {
  readonly #first: LiveCluster;

  constructor(first: LiveCluster) {
    this.#first = first;
  }

  /** Returns the active node of a cluster that does not serve clients. */
  active(site: LiveCluster): Promise<LiveNode> {
    return until('a node of the cluster is active', async () => {
      for (const node of site.nodes) if (node.alive && (await node.ask('GET', 'sys/leader')).at('is_self') === true) return node;
      return undefined;
    });
  }

  async control(site: LiveCluster, path: string, body: object = {}): Promise<Answer> {
    return site.ask(await this.active(site), 'POST', `${dr}/${path}`, body, { token: this.#first.rootToken });
  }

  async status(site: LiveCluster): Promise<Answer> {
    return (await this.active(site)).ask('GET', `${dr}/status`);
  }

  /** Waits until every living node answers with one of the codes. */
  reach(site: LiveCluster, codes: readonly number[]): Promise<boolean> {
    return until(
      `all nodes answer ${codes}`,
      async () => (await codesOf(site)).every((code) => code === undefined || codes.includes(code)),
      { explain: () => site.tails() },
    );
  }

  /**
   * Makes one cluster the secondary of the other. A cluster with a Shamir seal that follows for the first time is unsealed with the
   * primary's shares.
   */
  async follow(primary: LiveCluster, secondary: LiveCluster, id: string): Promise<void> {
    const token = await until('the primary issues a token', async () => {
      const answer = await this.control(primary, 'primary/secondary-token', { id });
      return answer.status === 200 && answer.string('data.token');
    });
    const isNew = (await this.status(secondary)).at('data.mode') === 'disabled';
    const authorized = { token: (isNew ? secondary : this.#first).rootToken };
    const { status, text } = await until('the secondary is enabled, or refuses', async () => {
      const node = await this.active(secondary);
      const answer = await secondary.ask(node, 'POST', `${dr}/secondary/enable`, { token }, authorized);
      return answer.status !== 503 && answer; // an election, or a transfer of leadership
    });
    if (status !== 204) throw new Error(`the cluster could not be enabled as a secondary: ${text}`);
    if (isNew && secondary.sharesUnseal) {
      await this.reach(secondary, [503]);
      for (const each of secondary.nodes) await secondary.unseal(each, this.#first.shares);
    }
    await this.reach(secondary, [472]);
  }

  /** Waits until both clusters have the same records at the same position. */
  equal(a: LiveCluster, b: LiveCluster): Promise<boolean> {
    return until(
      'both clusters have the same records',
      async () => {
        const [own, other] = [await this.status(a), await this.status(b)].map((one) => one.at('data.merkle_root'));
        return own !== undefined && own === other;
      },
      { explain: () => `${a.tails()}\n${b.tails()}` },
    );
  }

  /** Kills all nodes of a cluster at once. */
  async lose(site: LiveCluster): Promise<void> {
    await Promise.all(site.nodes.map((node) => node.kill()));
  }

  /** Starts and unseals the nodes of a cluster that was lost; ends when it has learned of its successor. */
  async restore(site: LiveCluster): Promise<void> {
    await Promise.all(site.nodes.map((node) => node.start()));
    for (const node of site.nodes) await site.unseal(node, this.#first.shares);
    await this.reach(site, [472]);
  }

  async keys(site: LiveCluster): Promise<ReadonlySet<unknown>> {
    const node = await this.active(site);
    const keys: unknown = (await site.ask(node, 'LIST', 'transit/keys', undefined, { token: this.#first.rootToken })).at(
      'data.keys',
    );
    return new Set(Array.isArray(keys) ? keys : []);
  }

  get rootToken(): string {
    return this.#first.rootToken;
  }
}

/** Creates keys, several at a time, until it is stopped or the node no longer answers. */
export class SiteLoad {
  /** Names of created keys with the log indexes of the answers, in the order of the answers. */
  readonly acknowledged: { readonly name: string; readonly index: number }[] = [];
  readonly #ended: Promise<unknown>;
  #isStopped = false;

  constructor(
    node: LiveNode,
    { clients, prefix, token }: { readonly clients: number; readonly prefix: string; readonly token: string },
  ) {
    const run = async (client: number): Promise<void> => {
      for (let at = 0; !this.#isStopped; at++) {
        const name = `${prefix}-${client}-${at}`;
        try {
          const { status, headers } = await node.ask('POST', `transit/keys/${name}`, { token, body: {} });
          const index = indexIn(headers.get('x-service-index') ?? undefined)?.index;
          if (status < 300 && index !== undefined) this.acknowledged.push({ name, index });
        } catch {
          return; // the node was killed
        }
      }
    };
    this.#ended = Promise.all(Array.from({ length: clients }, (_, client) => run(client)));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#ended;
  }
}
