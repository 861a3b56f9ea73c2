// @live
// The spans of one forwarded write, as a collector of OpenTelemetry receives them from two nodes.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { base64 } from '../process/live-server.ts';
import { scenarioMs, withCluster } from './harness/scenario.ts';
import { until } from './harness/until.ts';

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly status: { readonly code?: number };
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  /** Name of the node that sent the span. */
  readonly node: unknown;
}

class Collector {
  readonly spans: Span[] = [];
  received = '';
  readonly #server = createServer(async (req, res) => {
    const body = await text(req);
    this.received += body;
    for (const { resource, scopeSpans } of JSON.parse(body).resourceSpans) {
      const { attributes } = resource as Pick<Span, 'attributes'>;
      const node = attributes.find(({ key }) => key === 'service.instance.id')?.value['stringValue'];
      for (const { spans } of scopeSpans) this.spans.push(...spans.map((span: object) => ({ ...span, node })));
    }
    res.writeHead(200).end('{}');
  });

  async listen(): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1/traces`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Returns a span and the spans below it: `node name(child, child)`, children by the order of their starts. */
  tree(root: Span): string {
    const children = this.spans
      .filter(({ parentSpanId }) => parentSpanId === root.spanId)
      .toSorted((a, b) => Number(BigInt(a.startTimeUnixNano) - BigInt(b.startTimeUnixNano)))
      .map((child) => this.tree(child));
    return `${root.node} ${root.name}${children.length > 0 ? `(${children.join(', ')})` : ''}`;
  }
}

/** Number of spans of the request, on both nodes. */
const spans = 12;

const attribute = ({ attributes }: Span, name: string): unknown =>
  Object.values(attributes.find(({ key }) => key === name)?.value ?? {})[0];

describe('tracing in a cluster', function () {
  this.timeout(scenarioMs);
  const collector = new Collector();
  let endpoint = '';
  before(async () => {
    endpoint = await collector.listen();
  });
  after(() => collector.close());

  it('shows one forwarded write on both nodes, and nothing that the caller sent', () =>
    withCluster(
      {
        size: 2,
        elections: 'never',
        // With a long interval, the standby tries the request itself on a slow machine too.
        config: { tracing: { endpoint, sample_one_in: 1_000_000 }, cluster_heartbeat_interval: '10s' },
        env: () => ({ TRANSITD_TELEMETRY_ADDRESS: '127.0.0.1:0' }),
      },
      async (cluster) => {
        const leader = await cluster.settled();
        const [standby = leader] = cluster.others(leader);
        const traceId = '0af7651916cd43dd8448eb211c80319c';
        const parent = 'b7ad6b7169203331';
        const headers = { traceparent: `00-${traceId}-${parent}-01` };
        const plaintext = base64('a plaintext that no collector may see');
        const answer = await cluster.ask(standby, 'POST', 'transit/encrypt/secret-name', { plaintext }, { headers });
        expect(answer.status).to.equal(200);

        const ofTrace = () => collector.spans.filter((span) => span.traceId === traceId);
        const root = await until('both nodes have sent their spans', () => {
          const roots = ofTrace().filter(({ name }) => name === 'request');
          // The spans of a node may come in several messages.
          return roots.length === 2 && ofTrace().length >= spans && roots.find(({ parentSpanId }) => parentSpanId === parent);
        });
        const below = `${leader.name} generate, ${leader.name} crypto, ${leader.name} propose(${leader.name} commit, ${leader.name} apply)`;
        // The standby tries the request itself. It cannot store the key that this creates, so it forwards the request.
        const tried = `${standby.name} generate, ${standby.name} crypto, ${standby.name} propose`;
        expect(collector.tree(root)).to.equal(
          `${standby.name} request(${tried}, ${standby.name} forward(${leader.name} request(${below}), ${standby.name} apply))`,
        );
        expect(ofTrace()).to.have.length(spans);
        const [proposed, ...applied] = ofTrace().flatMap((span) => attribute(span, 'transitd.raft.index') ?? []);
        expect(applied, 'the standby applies what the leader has proposed').to.deep.equal([proposed]);
        const failed = ofTrace().filter(({ status }) => status.code === 2);
        expect(failed.map(({ node, name }) => `${node} ${name}`)).to.deep.equal([`${standby.name} propose`]);
        for (const span of ofTrace())
          expect(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano), span.name).to.equal(true);
        const requests = ofTrace().filter(({ name }) => name === 'request');
        expect(requests.map((span) => attribute(span, 'transitd.operation'))).to.deep.equal(['encrypt', 'encrypt']);
        expect(requests.map((span) => attribute(span, 'http.response.status_code'))).to.deep.equal([200, 200]);

        for (const secret of ['secret-name', plaintext, cluster.rootToken, answer.string('data.ciphertext')])
          expect(collector.received).not.to.contain(secret);

        const [, address = ''] = await standby.server.log(/"telemetry":"(http[^"]+)"/);
        const metrics = await fetch(`${address}/metrics`, { headers: { accept: 'application/openmetrics-text' } });
        expect(await metrics.text()).to.match(
          new RegExp(`^svc_core_handle_request_bucket\\{le="[^"]+"\\} \\d+ # \\{trace_id="${traceId}"\\} [\\d.]+ [\\d.]+$`, 'm'),
        );
      },
    ));
});
