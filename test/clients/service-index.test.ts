// Clients that read their own writes go from a lost primary to the promoted cluster: both Go clients, and our own.
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { TransitdClient } from '@transitd/client';
import { indexIn } from '@transitd/http';
import { expect } from 'chai';
import type { LiveCluster } from '../cluster/harness/live-cluster.ts';
import { scenarioMs } from '../cluster/harness/scenario.ts';
import { formSite, TwoSites } from '../cluster/harness/two-sites.ts';
import { until } from '../cluster/harness/until.ts';
import { build, programPath } from './go-programs.ts';

/** A program that names each step before it begins, and waits until it may. At its end it prints its result. */
class SteppedProgram {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #lines: AsyncIterator<string>;
  #stderr = '';

  constructor(file: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    this.#child = spawn(file, args, { env: { ...process.env, ...env } });
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text;
    });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
  }

  /** Returns the next line: the name of a step, or the result. */
  async line(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error(`the program ended: ${this.#stderr}`);
    return value;
  }

  /** Lets the present step begin, and returns the next line. */
  async proceed(): Promise<string> {
    this.#child.stdin.write('\n');
    return this.line();
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'exit');
  }
}

/** A client, and the indexes in its last request and in the response to it. */
class Traced {
  readonly client: TransitdClient;
  sent: string | null = null;
  received: string | null = null;

  constructor(addresses: readonly string[], token: string) {
    const traced: typeof fetch = async (url, init) => {
      this.sent = new Headers(init?.headers).get('X-Service-Index');
      const response = await fetch(url, init);
      this.received = response.headers.get('X-Service-Index');
      return response;
    };
    this.client = new TransitdClient({ addresses, token, fetch: traced });
  }
}

const programs = ['vault-api', 'openbao-api'] as const;

describe('clients that read their own writes, when their primary is lost', function () {
  this.timeout(scenarioMs);
  const clusters: LiveCluster[] = [];
  const running: SteppedProgram[] = [];
  before(async function () {
    for (const program of programs) await build(this, program);
  });
  after(async () => {
    for (const program of running) await program.end();
    for (const cluster of clusters) await cluster.end();
  });

  it('are answered by the promoted cluster, with a warning if it lacks their last write', async () => {
    const east = await formSite(1);
    clusters.push(east);
    const west = await formSite(1);
    clusters.push(west);
    const sites = new TwoSites(east);
    const enabled = await sites.control(east, 'primary/enable');
    expect(enabled.status, enabled.text).to.equal(204);
    await sites.follow(east, west, 'west');

    const addresses = [east.node(1).apiAddress, west.node(1).apiAddress];
    const [address = '', secondary = ''] = addresses;
    const env = { TRANSITD_ADDR: address, TRANSITD_SECONDARY_ADDR: secondary, TRANSITD_TOKEN: sites.rootToken };
    const go = programs.map((program, at) => {
      const own = { ...env, TRANSITD_KEY: `go${at}` };
      const stepped = new SteppedProgram(programPath(program), ['failover'], own);
      running.push(stepped);
      return stepped;
    });
    const [early, late] = [new Traced(addresses, sites.rootToken), new Traced(addresses, sites.rootToken)];
    const reaches = async (step: string, lines: readonly Promise<string>[]) =>
      expect(await Promise.all(lines)).to.deep.equal(lines.map(() => step));

    await reaches(
      'write',
      go.map((program) => program.line()),
    );
    await reaches(
      'write what is lost',
      go.map((program) => program.proceed()),
    );
    await early.client.transit().createKey('own-early');
    const contained = early.received;
    expect(indexIn(contained ?? '')?.history, 'the index names the set').to.include(
      String((await sites.status(east)).at('data.cluster_id')),
    );
    await sites.equal(east, west);
    expect((await sites.control(east, 'primary/revoke-secondary', { id: 'west' })).status).to.equal(204);
    await reaches(
      'read from the promoted cluster',
      go.map((program) => program.proceed()),
    );
    await late.client.transit().createKey('own-late');
    const lost = late.received;
    await sites.lose(east);
    expect((await sites.control(west, 'secondary/promote', { force: true })).status).to.equal(200);
    await until('the promoted cluster serves', async () => (await west.node(1).health())?.code === 200);

    for (const results of await Promise.all(go.map((program) => program.proceed())))
      expect(JSON.parse(results)).to.deep.equal({
        contained: [true, 0, ''],
        lost: [true, 1, true],
        missing: true,
        renewed: true,
        own: [true, 0, 2],
      });

    await early.client.transit().key('own-early');
    expect([early.sent, early.received]).to.deep.equal([contained, null]);
    await late.client.transit().key('own-early');
    const renewed = late.received;
    expect(late.sent).to.equal(lost);
    expect(renewed).to.be.a('string').that.is.not.equal(lost);
    await late.client.transit().rotateKey('own-early');
    const newest = late.received;
    expect(late.sent).to.equal(renewed);
    expect((await late.client.transit().key('own-early')).data.latest_version).to.equal(2);
    expect([late.sent, late.received]).to.deep.equal([newest, null]);
  });
});
