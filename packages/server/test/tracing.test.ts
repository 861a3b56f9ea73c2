// @live
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { Exemplars } from '../src/metrics/exemplars.ts';
import { batchMax, OtlpExporter, waitingMax } from '../src/tracing/otlp-exporter.ts';
import { type EndedSpan, exportBody } from '../src/tracing/otlp-json.ts';
import { askedPerSecondMax, OtlpTracer } from '../src/tracing/otlp-tracer.ts';
import { parseTraceparent, traceparentOf } from '../src/tracing/trace-context.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';
const resource = { node: 'n1', version: '0.1.0' };

describe('the header traceparent', () => {
  it('is parsed and written', () => {
    for (const sampled of [true, false]) {
      const context = { traceId, spanId, sampled };
      expect(parseTraceparent(traceparentOf(context))).to.deep.equal(context);
    }
    expect(parseTraceparent(`cc-${traceId}-${spanId}-09-later`)).to.deep.equal({ traceId, spanId, sampled: true });
  });

  for (const [what, header] of [
    ['no header', undefined],
    ['a repeated header', [`00-${traceId}-${spanId}-01`]],
    ['joined headers', `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`],
    ['an empty header', ''],
    ['capital letters', `00-${traceId.toUpperCase()}-${spanId}-01`],
    ['a short trace id', `00-${traceId.slice(1)}-${spanId}-01`],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${spanId}-01`],
    ['a span id of zeros', `00-${traceId}-${'0'.repeat(16)}-01`],
    ['version ff', `ff-${traceId}-${spanId}-01`],
    ['more fields in version 00', `00-${traceId}-${spanId}-01-more`],
    ['a very long header', `cc-${traceId}-${spanId}-01-${'x'.repeat(300)}`],
  ] as const)
    it(`is ignored with ${what}`, () => {
      expect(parseTraceparent(header)).to.equal(undefined);
    });
});

describe('the tracer', () => {
  const made = (random: (below: number) => number = () => 0) => {
    const ended: EndedSpan[] = [];
    return { ended, tracer: new OtlpTracer({ sampleOneIn: 10, random, ended: (span) => ended.push(span) }) };
  };

  it('samples one in so many requests without a context, and those that their caller sampled', () => {
    const { tracer } = made((below) => below - 1);
    expect(tracer.request({})).to.equal(undefined);
    expect(tracer.request({ traceparent: `00-${traceId}-${spanId}-00` })).to.equal(undefined);
    expect(tracer.request({ traceparent: `00-${traceId}-${spanId}-01` })).to.have.property('traceId', traceId);
    expect(made().tracer.request({ traceparent: `00-${traceId}-${spanId}-00` })).to.equal(undefined);
    expect(made().tracer.request({}))
      .to.have.property('traceId')
      .that.matches(/^[0-9a-f]{32}$/);
  });

  it('samples only so many requests in a second at the wish of their callers, and all that a member forwards', () => {
    let nowMs = 0;
    const tracer = new OtlpTracer({ sampleOneIn: 10, random: (below) => below - 1, nowMs: () => nowMs, ended: () => undefined });
    const asks = { traceparent: `00-${traceId}-${spanId}-01` };
    const sampled = (requests: number, isForwarded: boolean): number =>
      Array.from({ length: requests }, () => tracer.request(asks, isForwarded)).filter((span) => span !== undefined).length;
    expect(sampled(askedPerSecondMax + 50, false)).to.equal(askedPerSecondMax);
    expect(sampled(50, true)).to.equal(50);
    nowMs += 999;
    expect(sampled(1, false)).to.equal(0);
    nowMs += 1;
    expect(sampled(1, false)).to.equal(1);
  });

  it('makes children of the current span, in asynchronous steps too', async () => {
    const { tracer, ended } = made();
    const request = tracer.request({ traceparent: `00-${traceId}-${spanId}-01` });
    if (request === undefined) throw new Error('not sampled');
    await tracer.within(request, async () => {
      await Promise.resolve();
      const child = tracer.current()?.child('propose');
      child?.set('n', 1);
      child?.end(true);
      child?.set('n', 2);
      child?.end();
    });
    expect(tracer.current()).to.equal(undefined);
    request.end();
    const [propose, root] = ended;
    expect(ended).to.have.length(2);
    expect(root).to.include({ name: 'request', traceId, parentSpanId: spanId, failed: false });
    expect(propose).to.include({ name: 'propose', traceId, parentSpanId: root?.spanId, failed: true });
    expect([...(propose?.attributes ?? [])]).to.deep.equal([['n', 1]]);
    expect(root?.endMs).to.be.at.least(propose?.endMs ?? 0);
  });

  it('makes no spans of tasks that outlive the request', () => {
    const { tracer } = made();
    const request = tracer.request({});
    if (request === undefined) throw new Error('not sampled');
    tracer.within(request, () => {
      expect(tracer.current()).to.equal(request);
      request.end();
      expect(tracer.current()).to.equal(undefined);
    });
  });

  it('forwards the context of a request that is not sampled, without its flag', () => {
    const { tracer } = made();
    expect(tracer.unsampled({ traceparent: `00-${traceId}-${spanId}-01` })).to.equal(`00-${traceId}-${spanId}-00`);
    expect(tracer.unsampled({})).to.match(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  });
});

const span = (name: EndedSpan['name'] = 'request'): EndedSpan => ({
  traceId,
  spanId,
  parentSpanId: undefined,
  name,
  startMs: 1_700_000_000_000.25,
  endMs: 1_700_000_000_001,
  failed: false,
  attributes: new Map<string, string | number | boolean>([
    ['text', 'a'],
    ['whole', 3],
    ['part', 0.5],
    ['flag', true],
  ]),
});

describe('an export', () => {
  it('has the form of OTLP in JSON', () => {
    const { resourceSpans } = JSON.parse(exportBody([{ ...span('forward'), parentSpanId: spanId, failed: true }], resource));
    expect(resourceSpans[0].resource.attributes).to.deep.include({ key: 'service.instance.id', value: { stringValue: 'n1' } });
    expect(resourceSpans[0].scopeSpans[0].spans).to.deep.equal([
      {
        traceId,
        spanId,
        parentSpanId: spanId,
        name: 'forward',
        kind: 3,
        startTimeUnixNano: '1700000000000250000',
        endTimeUnixNano: '1700000000001000000',
        attributes: [
          { key: 'text', value: { stringValue: 'a' } },
          { key: 'whole', value: { intValue: '3' } },
          { key: 'part', value: { doubleValue: 0.5 } },
          { key: 'flag', value: { boolValue: true } },
        ],
        status: { code: 2 },
      },
    ]);
  });
});

describe('the exporter', () => {
  const servers: ReturnType<typeof createServer>[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.close();
      server.closeAllConnections();
    }
  });

  /** A collector that answers with `status` once `open` has resolved. */
  async function collector(status: number, open: Promise<void> = Promise.resolve()) {
    const sizes: number[] = [];
    const server = createServer(async (req, res) => {
      const { resourceSpans } = JSON.parse(await text(req));
      sizes.push(resourceSpans[0].scopeSpans[0].spans.length);
      await open;
      res.writeHead(status).end('{}');
    });
    servers.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return { sizes, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces` };
  }

  const counted = () => {
    const counts = { exported: 0, dropped: 0, reason: '' };
    const exported = (spans: number, error?: Error): void => {
      if (error === undefined) counts.exported += spans;
      else Object.assign(counts, { dropped: counts.dropped + spans, reason: error.message });
    };
    return { counts, exported };
  };

  it('sends full batches at once, and the rest at the end', async () => {
    const { sizes, endpoint } = await collector(200);
    const { counts, exported } = counted();
    const exporter = new OtlpExporter({ endpoint, resource, exported });
    for (let n = 0; n < batchMax + 3; n++) exporter.add(span());
    await exporter.close();
    expect(sizes).to.deep.equal([batchMax, 3]);
    expect(counts).to.include({ exported: batchMax + 3, dropped: 0 });
  });

  it('drops spans instead of waiting for a slow collector', async () => {
    const { promise: open, resolve } = Promise.withResolvers<void>();
    const { endpoint } = await collector(200, open);
    const { counts, exported } = counted();
    const exporter = new OtlpExporter({ endpoint, resource, exported });
    for (let n = 0; n < batchMax + waitingMax + 7; n++) exporter.add(span());
    expect(counts).to.include({ exported: 0, dropped: 7 });
    resolve();
    await exporter.close();
    expect(counts).to.include({ exported: batchMax + waitingMax, dropped: 7 });
    exporter.add(span());
    expect(counts.dropped).to.equal(8);
  });

  it('ends an export that the collector answers by a switch of protocols', async () => {
    const { counts, exported } = counted();
    const server = createNetServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n'));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const exporter = new OtlpExporter({
      endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
      resource,
      exported,
    });
    exporter.add(span());
    await exporter.close();
    expect(counts).to.deep.equal({ exported: 0, dropped: 1, reason: 'the collector closed the connection' });
    server.close();
  });

  it('drops what a failing or missing collector does not accept', async () => {
    const refusing = counted();
    const refused = new OtlpExporter({ endpoint: (await collector(503)).endpoint, resource, exported: refusing.exported });
    refused.add(span());
    await refused.close();
    expect(refusing.counts).to.deep.equal({ exported: 0, dropped: 1, reason: 'the collector answered 503' });
    const missing = counted();
    const { endpoint } = await collector(200);
    servers.pop()?.close();
    const lost = new OtlpExporter({ endpoint, resource, exported: missing.exported });
    lost.add(span());
    await lost.close();
    expect(missing.counts).to.include({ exported: 0, dropped: 1 });
    expect(missing.counts.reason).to.contain('ECONNREFUSED');
  });
});

describe('exemplars', () => {
  it('link the bucket of a duration to its trace', () => {
    const exemplars = new Exemplars('t_ms', [1, 5]);
    exemplars.note(3, traceId, 1_700_000_000_500);
    exemplars.note(9, traceId, 1_700_000_001_000);
    const row = (le: string | number, metricName = 't_ms_bucket') => exemplars.suffix({ metricName, labels: { le } });
    expect(row(1)).to.equal('');
    expect(row(5)).to.equal(` # {trace_id="${traceId}"} 3 1700000000.5`);
    expect(row('+Inf')).to.equal(` # {trace_id="${traceId}"} 9 1700000001`);
    expect(row(5, 't_ms_count') + row(5, 'other_bucket')).to.equal('');
  });
});
