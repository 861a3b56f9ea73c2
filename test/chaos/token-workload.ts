// Clients that create, use and revoke tokens through any node while faults strike the cluster.
import { setTimeout as delay } from 'node:timers/promises';
import { SimRandom } from '@transitd/raft-sim';
import type { LiveCluster } from '../cluster/harness/live-cluster.ts';
import type { LiveNode } from '../cluster/harness/live-node.ts';
import { attempt } from '../cluster/harness/outcome.ts';

/** `unknown`: a revocation was sent and its outcome is not known. */
type State = 'alive' | 'revoking' | 'revoked' | 'unknown';

interface Token {
  readonly secret: string;
  state: State;
}

const callMs = 15_000;
/** Limits the load, so that the nodes get enough CPU. */
const pauseMs = 25;
/** Maximum number of live tokens; the oldest is revoked first. */
const aliveMax = 24;
const policy = 'chaos';

/**
 * Every use checks two rules. After an acknowledged revocation no node accepts the token. A token whose creation was acknowledged
 * works on every node until its revocation starts. Between the start and the answer of a revocation, and after one with an unknown
 * outcome, both answers are valid.
 */
export class TokenWorkload {
  readonly violations: string[] = [];
  created = 0;
  revoked = 0;
  uses = 0;
  readonly #cluster: LiveCluster;
  readonly #random: SimRandom;
  readonly #tokens: Token[] = [];
  #stopping = false;
  #clients: Promise<unknown> = Promise.resolve();

  private constructor(cluster: LiveCluster, seed: number) {
    this.#cluster = cluster;
    this.#random = new SimRandom(seed);
  }

  static async start(cluster: LiveCluster, { seed, clients = 3 }: { readonly seed: number; readonly clients?: number }) {
    const workload = new TokenWorkload(cluster, seed);
    const rules = 'path "sys/capabilities-self" { capabilities = ["update"] }';
    const made = await cluster.askWhenLed(await cluster.leader(), 'POST', `sys/policies/acl/${policy}`, { policy: rules });
    if (made.status !== 204 && made.status !== 200) throw new Error(`policy: ${made.status} ${made.text}`);
    cluster.bears(workload);
    workload.#clients = Promise.all(Array.from({ length: clients }, () => workload.#client()));
    return workload;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await this.#clients;
  }

  /** Uses every token on every node once more after the last fault. Returns the violations of the whole run. */
  async conclude(): Promise<readonly string[]> {
    for (const token of this.#tokens) {
      const served = new Map<string, boolean>();
      for (const node of this.#cluster.nodes) {
        const { status } = await this.#cluster.askWhenLed(node, 'POST', 'sys/capabilities-self', use, { token: token.secret });
        served.set(node.name, status === 200);
      }
      const answers = new Set(served.values());
      const told = [...served].map(([name, ok]) => `${name} ${ok ? 'serves' : 'refuses'}`).join(', ');
      if (answers.size > 1) this.violations.push(`at the end, nodes differ on one token (${token.state}): ${told}`);
      if (token.state === 'alive' && answers.has(false))
        this.violations.push(`at the end, an acknowledged token is lost: ${told}`);
      if (token.state === 'revoked' && answers.has(true)) this.violations.push(`at the end, a revoked token works: ${told}`);
    }
    return this.violations;
  }

  async #client(): Promise<void> {
    while (!this.#stopping) {
      await this.#step(this.#random.pick(this.#cluster.nodes));
      await delay(pauseMs);
    }
  }

  async #step(node: LiveNode): Promise<void> {
    const alive = this.#tokens.filter(({ state }) => state === 'alive');
    const dice = this.#random.below(100);
    if (dice < 20 && alive.length < aliveMax) return this.#create(node);
    const oldest = alive[0];
    if (dice < 40 && oldest !== undefined) return this.#revoke(node, oldest);
    if (this.#tokens.length > 0) return this.#use(node, this.#random.pick(this.#tokens.slice(-2 * aliveMax)));
  }

  async #create(node: LiveNode): Promise<void> {
    const body = { policies: [policy], no_default_policy: true, ttl: '24h' };
    const outcome = await attempt(this.#cluster.ask(node, 'POST', 'auth/token/create', body, { withinMs: callMs }));
    if (outcome.kind !== 'done') return;
    this.created += 1;
    this.#tokens.push({ secret: outcome.answer.string('auth.client_token'), state: 'alive' });
  }

  async #revoke(node: LiveNode, token: Token): Promise<void> {
    token.state = 'revoking';
    const body = { token: token.secret };
    const outcome = await attempt(this.#cluster.ask(node, 'POST', 'auth/token/revoke', body, { withinMs: callMs }));
    token.state = outcome.kind === 'done' ? 'revoked' : outcome.kind === 'refused' ? 'alive' : 'unknown';
    if (outcome.kind === 'done') this.revoked += 1;
  }

  async #use(node: LiveNode, token: Token): Promise<void> {
    const before = token.state;
    const outcome = await attempt(
      node.ask('POST', 'sys/capabilities-self', { body: use, token: token.secret, withinMs: callMs }),
    );
    const after = token.state;
    this.uses += 1;
    if (outcome.kind === 'done' && before === 'revoked') this.violations.push(`${node.name} served a revoked token`);
    if (outcome.kind !== 'refused' || outcome.status !== 403) return;
    if (before === 'alive' && after === 'alive') this.violations.push(`${node.name} refused a token that nobody revoked`);
  }
}

/** A request that needs nothing but the token and its policy. */
const use = { path: 'transit/keys/none' };
