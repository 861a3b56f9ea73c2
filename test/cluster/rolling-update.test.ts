// @live
// A rolling update in the order of a StatefulSet: from the last pod to the first. Each pod is a real process, with the preStop, the signal,
// the grace period and the probes of the manifests.
import { setTimeout as pause } from 'node:timers/promises';
import { expect } from 'chai';
import { container, manifest } from '../deploy/manifests.ts';
import type { LiveCluster } from './harness/live-cluster.ts';
import type { LiveNode } from './harness/live-node.ts';
import { isRefusedForNow } from './harness/outcome.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';
import { until } from './harness/until.ts';

const { spec } = manifest('StatefulSet', 'transitd').spec.template;
const { livenessProbe, readinessProbe, lifecycle } = container('transitd');
const preStopMs = Number(lifecycle.preStop.exec.command[1]) * 1000;
const graceMs = spec.terminationGracePeriodSeconds * 1000 - preStopMs;
/** The preStop is shorter than in the manifests. The node does not notice the preStop, so its length does not matter. */
const playedPreStopMs = 300;
/** Pause between two writes: leaves the processors to the nodes. */
const writePauseMs = 20;
/** So long that a leader that ended without a transfer would be missed, however much the machine stalls. */
const electionTimeoutS = 60;
/**
 * Upper limit of a write during a planned transfer, with its repetitions. Far below the election timeout: a leader that ended without a
 * transfer is replaced only after that time.
 */
const transferMsMax = (electionTimeoutS * 1000) / 2;

const succeeds = async (node: LiveNode, path: string): Promise<boolean> => {
  const answer = await fetch(`${node.apiAddress}${path}`).catch(() => undefined);
  await answer?.body?.cancel();
  return answer !== undefined && answer.status < 400;
};

/**
 * The Service for all nodes. It includes the pods that were ready at the last probe, and pods that are ending until the end of their
 * preStop.
 */
class Endpoints {
  readonly #ready: Set<LiveNode>;
  #turn = 0;

  constructor(nodes: readonly LiveNode[]) {
    this.#ready = new Set(nodes);
  }

  set(node: LiveNode, isReady: boolean): void {
    if (isReady) this.#ready.add(node);
    else this.#ready.delete(node);
  }

  next(): LiveNode {
    const nodes = [...this.#ready];
    const node = nodes[this.#turn++ % nodes.length];
    if (node === undefined) throw new Error('no pod is ready');
    return node;
  }
}

/** Creates keys one after the other, each until it is acknowledged. */
class Writer {
  readonly #cluster: LiveCluster;
  readonly #endpoints: Endpoints;
  readonly #abort = new AbortController();
  readonly #running: Promise<void>;
  written = 0;
  slowestMs = 0;

  constructor(cluster: LiveCluster, endpoints: Endpoints) {
    this.#cluster = cluster;
    this.#endpoints = endpoints;
    this.#running = this.#run();
    // `stop` reports the error.
    this.#running.catch(() => undefined);
    cluster.bears(this);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#abort.signal.aborted) {
      const begunMs = performance.now();
      await until(`key k${this.written} is created`, () => this.#create());
      this.slowestMs = Math.max(this.slowestMs, performance.now() - begunMs);
      this.written += 1;
      await pause(writePauseMs);
    }
  }

  /** Creating a key a second time changes nothing, so each failed attempt may be repeated. */
  async #create(): Promise<boolean> {
    const node = this.#endpoints.next();
    const answer = await this.#cluster.ask(node, 'POST', `transit/keys/k${this.written}`, {}).catch(() => undefined);
    if (answer === undefined || isRefusedForNow(answer) || answer.status === 504) return false;
    if (answer.status !== 200 && answer.status !== 204) throw new Error(`${answer.status} ${answer.text}`);
    return true;
  }
}

/** Ends a pod and starts its successor on the same disk. Resolves when the successor is ready. */
async function replacePod(node: LiveNode, endpoints: Endpoints): Promise<void> {
  await pause(playedPreStopMs);
  endpoints.set(node, false); // the latest moment at which the preStop may end
  const begunMs = performance.now();
  expect(await node.stop()).to.deep.equal({ code: 0, signal: null });
  expect(performance.now() - begunMs, 'time to stop').to.be.below(graceMs);
  await node.start();
  await until(`${node.name} is ready`, () => succeeds(node, readinessProbe.httpGet.path), { explain: () => node.tail() });
  endpoints.set(node, true);
}

describe('a rolling update of the StatefulSet', function () {
  this.timeout(scenarioMs);

  it('interrupts writes for no longer than a planned transfer of leadership', () =>
    withCluster({ config: { raft: { election_timeout: `${electionTimeoutS}s` } } }, async (cluster) => {
      const endpoints = new Endpoints(cluster.nodes);
      const writer = new Writer(cluster, endpoints);
      for (const node of cluster.nodes.toReversed()) {
        const before = writer.written;
        await replacePod(node, endpoints);
        await until('writes continue', () => writer.written > before);
      }
      await writer.stop();
      expect(writer.slowestMs).to.be.below(transferMsMax);
      const keys = await cluster.askWhenLed(await cluster.leader(), 'LIST', 'transit/keys');
      expect(keys.at('data.keys')).to.have.length.at.least(writer.written);
    }));

  it('does not restart an uninitialized or sealed pod, and sends it no requests', () =>
    withCluster({ size: 1, seal: 'shamir' }, async (cluster) => {
      const node = cluster.node(1);
      const probes = async () => ({
        isAlive: await succeeds(node, livenessProbe.httpGet.path),
        isReady: await succeeds(node, readinessProbe.httpGet.path),
      });
      expect(await probes()).to.deep.equal({ isAlive: true, isReady: true });
      expect((await cluster.askWhenLed(node, 'PUT', 'sys/seal')).status).to.equal(204);
      await node.reaches(503);
      expect(await probes()).to.deep.equal({ isAlive: true, isReady: false });
      await node.replace();
      await node.reaches(501);
      expect(await probes()).to.deep.equal({ isAlive: true, isReady: false });
    }));
});
