// The demonstration of docker-compose.yml: through HAProxy, monitored by Prometheus, with a killed leader.
import { expect } from 'chai';
import { attempt } from '../cluster/harness/outcome.ts';
import { until } from '../cluster/harness/until.ts';
import { named, withoutValue } from '../deploy/metric-names.ts';
import { base64 } from '../process/live-server.ts';
import { Demo, type NodeName, nodes } from './demo.ts';

const plaintext = base64('through HAProxy');
/** Time within which writes must succeed again after the leader was killed. */
const writableAgainMs = 2000;
/**
 * At least so long after the end of the active node, HAProxy sends requests to the standbys, which let them wait for the next active node:
 * health reports contact for two heartbeat intervals (1 s each), and the last contact was at most one interval before that end.
 */
const inServiceMs = 1000;

interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

describe('the demonstration of docker-compose.yml', () => {
  let demo: Demo;
  let killed: NodeName;

  before(async () => {
    demo = await Demo.start();
  });
  after(() => demo?.end());

  /** Returns the result of a Prometheus query. */
  async function query(text: string): Promise<readonly Sample[]> {
    const response = await fetch(`${demo.url('prometheus')}/api/v1/query?query=${encodeURIComponent(text)}`);
    return ((await response.json()) as { data: { result: readonly Sample[] } }).data.result;
  }

  it('initializes and unseals itself, and says that it is not for production', async () => {
    const said = await demo.compose('logs', '--no-color', 'init');
    expect(said).to.match(/3 nodes serve\. NOT FOR PRODUCTION/);
    expect(said).to.include('/run/demo/root-token').and.not.to.include(demo.rootToken);
    expect((await demo.ask('any', 'GET', 'auth/token/lookup-self')).status).to.equal(200);
    const listed = await demo.ask('leader', 'GET', 'sys/storage/raft/configuration');
    expect((listed.at('data.config.servers') as { node_id: string }[]).map(({ node_id }) => node_id)).to.have.members([...nodes]);
  });

  it('answers from every serving node at one front end, and from the active node only at the other', async () => {
    const seen = async (way: 'any' | 'leader'): Promise<Set<number>> => {
      const answers = await Promise.all(Array.from({ length: 12 }, () => demo.ask(way, 'GET', 'sys/health')));
      return new Set(answers.map(({ status }) => status));
    };
    await until('HAProxy has found every server', async () => (await seen('any')).size === 2);
    expect(await seen('any')).to.deep.equal(new Set([200, 473]));
    expect(await seen('leader')).to.deep.equal(new Set([200]));
  });

  it('is scraped: three nodes and HAProxy, with every metric in rules and dashboard', async () => {
    expect((await demo.ask('any', 'POST', 'transit/encrypt/scraped', { plaintext })).status).to.equal(200);
    await until('Prometheus has scraped all of them', async () => (await query('up == 1')).length === 4);
    const expected = named().filter((name) => !withoutValue.includes(name));
    for (const name of expected) await until(`Prometheus has ${name}`, async () => (await query(name)).length > 0);
    let firing: readonly unknown[] = [];
    const explain = (): string => JSON.stringify(firing);
    const quiet = async (): Promise<boolean> => {
      firing = await query('ALERTS{alertstate="firing"}');
      return firing.length === 0;
    };
    await until('nothing is wrong', quiet, { explain });
  });

  it('keeps encrypting when the leader is killed, and accepts writes again', async () => {
    expect((await demo.ask('any', 'POST', 'transit/keys/orders', {})).status).to.equal(200);
    const ciphertexts: string[] = [];
    const failures: string[] = [];
    let [killedMs, stopping] = [Number.POSITIVE_INFINITY, false];
    const readers = Array.from({ length: 4 }, async () => {
      while (!stopping) {
        const outcome = await attempt(demo.ask('any', 'POST', 'transit/encrypt/orders', { plaintext }));
        if (outcome.kind === 'done') ciphertexts.push(outcome.answer.string('data.ciphertext'));
        // On a busy machine, an election may take longer than that.
        else if (performance.now() - killedMs < inServiceMs) failures.push(`${outcome.kind}: ${outcome.text}`);
      }
    });
    /** Resolves when a write succeeds. */
    const write = (way: 'any' | 'leader', name: string) =>
      until(
        `a write through ${way} succeeds`,
        async () => (await attempt(demo.ask(way, 'POST', `transit/keys/${name}`, {}))).kind === 'done',
      );
    try {
      await until('encryption continues', () => ciphertexts.length >= 100);
      killed = await demo.leader();
      const container = await demo.container(killed);
      killedMs = performance.now(); // before the command, which may take a second longer than the node's end
      await demo.docker('kill', container);
      const before = ciphertexts.length;
      await Promise.all([write('any', 'written-to-any'), write('leader', 'written-to-the-leader')]);
      const awayMs = Math.round(performance.now() - killedMs);
      console.log(`      no write succeeded for ${awayMs} ms; at most ${writableAgainMs} ms are required on an idle machine`);
      await until('encryption continues', () => ciphertexts.length >= before + 100);
    } finally {
      stopping = true;
      await Promise.all(readers);
    }
    expect(failures, [...new Set(failures)].join('\n')).to.deep.equal([]);
    expect(await demo.leader()).not.to.equal(killed);
    const opened = await demo.ask('any', 'POST', 'transit/decrypt/orders', {
      batch_input: ciphertexts.map((ciphertext) => ({ ciphertext })),
    });
    const results = opened.at('data.batch_results') as { plaintext?: string }[];
    expect(results.filter((result) => result.plaintext !== plaintext)).to.deep.equal([]);
  });

  it('fires an alert for the killed node, and resolves it when the node is back', async () => {
    const down = `ALERTS{alertname="TransitdNodeDown", alertstate="firing"}`;
    const firing = await until(
      'the alert fires',
      async () => {
        const found = await query(down);
        return found.length > 0 && found;
      },
      { withinMs: 120_000 },
    );
    expect(firing.map(({ metric }) => metric['instance'])).to.deep.equal([`${killed}:8202`]);
    expect(await demo.up()).to.match(/3 nodes serve/);
    await until('the alert is over', async () => (await query(down)).length === 0);
    expect((await demo.ask('leader', 'POST', 'transit/decrypt/orders', { ciphertext: 'svc:v1:AAAA' })).status).to.equal(400);
  });
});
