// @live
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import { version } from '@transitd/process';
import { expect } from 'chai';
import { Exemplars } from '../src/metrics/exemplars.ts';
import { OtelTracer } from '../src/tracing/otel-tracer.ts';
import { batchMax, type OtlpExporterOptions, spanQueue, waitingMax } from '../src/tracing/otlp-exporter.ts';
import { askedPerSecondMax, RequestSampler } from '../src/tracing/request-sampler.ts';
import { parseTraceparent, traceparentOf } from '../src/tracing/trace-context.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';

/** What the tests read of an export. */
interface ResourceSpans {
  readonly scopeSpans: readonly {
    readonly spans: readonly { readonly startTimeUnixNano: string; readonly endTimeUnixNano: string }[];
  }[];
}

describe('the header traceparent', () => {
  it('is parsed and written', () => {
    for (const traceFlags of [TraceFlags.SAMPLED, TraceFlags.NONE]) {
      const context = { traceId, spanId, traceFlags, isRemote: true };
      expect(parseTraceparent(traceparentOf(context))).to.deep.equal(context);
    }
    const later = parseTraceparent(`cc-${traceId}-${spanId}-09-later`);
    expect(later && traceparentOf(later)).to.equal(`00-${traceId}-${spanId}-01`);
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

/** A processor that keeps the spans that have ended. */
function keeper(): { readonly ended: ReadableSpan[]; readonly processor: SpanProcessor } {
  const ended: ReadableSpan[] = [];
  const nothing = (): Promise<void> => Promise.resolve();
  return {
    ended,
    processor: { onStart: () => undefined, onEnd: (span) => ended.push(span), forceFlush: nothing, shutdown: nothing },
  };
}

describe('the tracer', () => {
  const made = (random: (below: number) => number = () => 0) => {
    const { ended, processor } = keeper();
    return { ended, tracer: new OtelTracer({ node: 'n1', sampler: new RequestSampler({ sampleOneIn: 10, random }), processor }) };
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
    const sampler = new RequestSampler({ sampleOneIn: 10, random: (below) => below - 1, nowMs: () => nowMs });
    const tracer = new OtelTracer({ node: 'n1', sampler, processor: keeper().processor });
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

  it('samples further requests of such callers as if they had no context, whatever trace ID they chose', () => {
    const { tracer } = made((below) => below - 1);
    const asks = (id: string) => tracer.request({ traceparent: `00-${id}-${spanId}-01` });
    for (let n = 0; n < askedPerSecondMax; n++) asks(traceId);
    for (const id of [`${'0'.repeat(31)}1`, 'f'.repeat(32), traceId]) expect(asks(id)).to.equal(undefined);
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
    expect(ended.map(({ name }) => name)).to.deep.equal(['propose', 'request']);
    expect(ended.map((span) => span.spanContext().traceId)).to.deep.equal([traceId, traceId]);
    expect(ended.map(({ parentSpanContext }) => parentSpanContext?.spanId)).to.deep.equal([root?.spanContext().spanId, spanId]);
    expect(ended.map(({ status }) => status.code)).to.deep.equal([SpanStatusCode.ERROR, SpanStatusCode.UNSET]);
    expect(propose?.attributes).to.deep.equal({ n: 1 });
    expect(nanoseconds(root?.endTime)).to.be.at.least(nanoseconds(propose?.endTime));
  });

  it('takes the times of a trace from the monotonic clock', () => {
    const { tracer, ended } = made();
    const { now } = Date;
    try {
      const request = tracer.request({});
      Date.now = () => now() + 3_600_000;
      request?.child('propose').end();
      Date.now = () => now() - 3_600_000;
      request?.end();
    } finally {
      Date.now = now;
    }
    const [propose, root] = ended;
    const times = [root?.startTime, propose?.startTime, propose?.endTime, root?.endTime].map(nanoseconds);
    expect(times).to.deep.equal(times.toSorted((a, b) => a - b));
    expect(nanoseconds(root?.duration)).to.be.below(1_800_000 * 1e6);
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

const nanoseconds = ([seconds, rest]: ReadableSpan['startTime'] = [Number.NaN, Number.NaN]): number => seconds * 1e9 + rest;

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
    const exports: {
      readonly headers: IncomingHttpHeaders;
      readonly body: { readonly resourceSpans: readonly ResourceSpans[] };
    }[] = [];
    const server = createServer(async (req, res) => {
      exports.push({ headers: req.headers, body: JSON.parse(await text(req)) });
      await open;
      res.writeHead(status).end('{}');
    });
    servers.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`;
    return { exports, endpoint };
  }

  const counted = () => {
    const counts = { exported: 0, dropped: 0, reason: '' };
    const exported = (spans: number, error?: Error): void => {
      if (error === undefined) counts.exported += spans;
      else Object.assign(counts, { dropped: counts.dropped + spans, reason: error.message });
    };
    return { counts, exported };
  };

  /** A queue to a collector, the tracer that fills it, and a function that adds spans. */
  const queueTo = (endpoint: string, exported: OtlpExporterOptions['exported'] = () => undefined) => {
    const processor = spanQueue({ endpoint, exported });
    const tracer = new OtelTracer({ node: 'n1', sampler: new RequestSampler({ sampleOneIn: 1 }), processor });
    const add = (spans: number): void => {
      for (let n = 0; n < spans; n++) tracer.request({})?.end();
    };
    return { tracer, add, close: () => processor.shutdown() };
  };

  it('sends OTLP in JSON', async () => {
    const { exports, endpoint } = await collector(200);
    const { tracer, close } = queueTo(endpoint);
    const request = tracer.request({ traceparent: `00-${traceId}-${spanId}-01` });
    const forward = request?.child('forward');
    const attributes = { text: 'a', whole: 3, part: 0.5, flag: true };
    for (const [name, value] of Object.entries(attributes)) forward?.set(name, value);
    forward?.end(true);
    await close();
    expect(exports).to.have.length(1);
    const [{ headers, body } = { headers: {}, body: { resourceSpans: [] } }] = exports;
    expect(headers).to.include({ 'content-type': 'application/json' });
    const spans = body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans));
    const [, parentSpanId = ''] = /^00-\w+-(\w+)-01$/.exec(request?.traceparent ?? '') ?? [];
    const [, forwardId = ''] = /^00-\w+-(\w+)-01$/.exec(forward?.traceparent ?? '') ?? [];
    const [{ startTimeUnixNano = '', endTimeUnixNano = '' } = {}] = spans;
    for (const time of [startTimeUnixNano, endTimeUnixNano]) expect(time).to.match(/^\d{19}$/);
    expect(body).to.deep.equal({
      resourceSpans: [
        {
          resource: {
            attributes: [
              { key: 'service.name', value: { stringValue: 'transitd' } },
              { key: 'service.version', value: { stringValue: version } },
              { key: 'service.instance.id', value: { stringValue: 'n1' } },
            ],
            droppedAttributesCount: 0,
          },
          scopeSpans: [
            {
              scope: { name: 'transitd', version },
              spans: [
                {
                  traceId,
                  spanId: forwardId,
                  parentSpanId,
                  name: 'forward',
                  kind: 3,
                  startTimeUnixNano,
                  endTimeUnixNano,
                  attributes: [
                    { key: 'text', value: { stringValue: 'a' } },
                    { key: 'whole', value: { intValue: 3 } },
                    { key: 'part', value: { doubleValue: 0.5 } },
                    { key: 'flag', value: { boolValue: true } },
                  ],
                  droppedAttributesCount: 0,
                  events: [],
                  droppedEventsCount: 0,
                  status: { code: 2 },
                  links: [],
                  droppedLinksCount: 0,
                  flags: 0x101,
                },
              ],
            },
          ],
        },
      ],
    });
  });

  const sizes = (exports: Awaited<ReturnType<typeof collector>>['exports']): number[] =>
    exports.map(({ body }) => body.resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)).length);

  it('sends full batches at once, and the rest at the end', async () => {
    const { exports, endpoint } = await collector(200);
    const { counts, exported } = counted();
    const { add, close } = queueTo(endpoint, exported);
    add(batchMax + 3);
    await close();
    expect(sizes(exports).toSorted((a, b) => b - a)).to.deep.equal([batchMax, 3]);
    expect(counts).to.include({ exported: batchMax + 3, dropped: 0 });
  });

  it('drops spans instead of waiting for a slow collector', async () => {
    const { promise: open, resolve } = Promise.withResolvers<void>();
    const { endpoint } = await collector(200, open);
    const { counts, exported } = counted();
    const { add, close } = queueTo(endpoint, exported);
    add(batchMax + waitingMax + 7);
    expect(counts).to.deep.equal({ exported: 0, dropped: 7, reason: 'too many spans wait for the collector' });
    resolve();
    await close();
    expect(counts).to.include({ exported: batchMax + waitingMax, dropped: 7 });
  });

  it('sends one export at a time, also after failed ones, while further spans end', async () => {
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const atOnce = { now: 0, most: 0 };
    let dropped = 0;
    const server = createServer(async (req, res) => {
      if (req.method === 'GET') {
        res.end();
        return;
      }
      atOnce.now += 1;
      atOnce.most = Math.max(atOnce.most, atOnce.now);
      await text(req);
      queue.add(1);
      // An export that this span had started would arrive before these requests.
      for (let n = 0; n < 3; n++) await (await fetch(endpoint)).text();
      atOnce.now -= 1;
      res.writeHead(503).end();
    });
    servers.push(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`;
    const queue = queueTo(endpoint, (spans) => {
      dropped += spans;
      if (dropped >= waitingMax) resolve();
    });
    queue.add(batchMax + waitingMax);
    await ended;
    expect(atOnce.most).to.equal(1);
  });

  it('ends an export that the collector answers by a switch of protocols', async () => {
    const { counts, exported } = counted();
    const server = createNetServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n'));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { add, close } = queueTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, exported);
    add(1);
    await close();
    expect(counts).to.deep.equal({ exported: 0, dropped: 1, reason: 'the collector closed the connection' });
    server.close();
  });

  it('drops what a collector does not answer in time', async () => {
    const { promise: open, resolve } = Promise.withResolvers<void>();
    const { endpoint } = await collector(200, open);
    const { counts, exported } = counted();
    const { add, close } = queueTo(endpoint, exported);
    add(1);
    await close();
    expect(counts).to.include({ exported: 0, dropped: 1 });
    resolve();
  });

  it('drops what a failing or missing collector does not accept, without another attempt', async () => {
    const refusing = counted();
    const { exports, endpoint: refusingEndpoint } = await collector(503);
    const refused = queueTo(refusingEndpoint, refusing.exported);
    refused.add(1);
    await refused.close();
    expect(refusing.counts).to.deep.equal({ exported: 0, dropped: 1, reason: 'the collector answered 503' });
    expect(exports).to.have.length(1);
    const missing = counted();
    const { endpoint } = await collector(200);
    servers.pop()?.close();
    const lost = queueTo(endpoint, missing.exported);
    lost.add(1);
    await lost.close();
    expect(missing.counts).to.include({ exported: 0, dropped: 1 });
    expect(missing.counts.reason).to.contain('ECONNREFUSED');
  });
});

describe('a process', () => {
  /** Variables that change the SDK's sampling, limits, queue, resource or exporter in its default set-up, and a password. */
  const variables = {
    OTEL_SDK_DISABLED: 'true',
    OTEL_TRACES_SAMPLER: 'always_off',
    OTEL_TRACES_EXPORTER: 'none',
    OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: '1',
    OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: '1',
    OTEL_ATTRIBUTE_COUNT_LIMIT: '1',
    OTEL_BSP_MAX_QUEUE_SIZE: '1',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1',
    OTEL_BSP_SCHEDULE_DELAY: '1',
    OTEL_BSP_EXPORT_TIMEOUT: '1',
    OTEL_SERVICE_NAME: 'variable',
    OTEL_RESOURCE_ATTRIBUTES: 'variable=variable',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:1',
    OTEL_EXPORTER_OTLP_HEADERS: 'variable=variable',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_EXPORTER_OTLP_TIMEOUT: '1',
    OTEL_EXPORTER_OTLP_CERTIFICATE: '/variable',
    OTEL_LOG_LEVEL: 'all',
  };
  let output: {
    readonly off: boolean;
    readonly loadedOff: readonly string[];
    readonly loadedOn: readonly string[];
    readonly read: readonly string[];
    readonly counts: object;
  };
  let received = '';
  let errors = '';

  before(async () => {
    const server = createServer(async (req, res) => {
      received += req.rawHeaders.join('\n') + (await text(req));
      res.end('{}');
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`;
    const script = join(import.meta.dirname, 'otel-process.ts');
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [script, endpoint], {
      env: { ...process.env, ...variables },
    });
    errors = stderr;
    output = JSON.parse(stdout);
    server.close();
  });

  it('without a collector loads nothing of OpenTelemetry but its API, which the registry of metrics loads', () => {
    expect(output).to.deep.include({ off: false, loadedOff: ['@opentelemetry/api'] });
    expect(output.loadedOn).to.include.members(['@opentelemetry/sdk-trace', '@opentelemetry/otlp-transformer']);
  });

  it('reads no variable of OpenTelemetry, and sends all spans and attributes in spite of them', () => {
    expect(output).to.deep.include({ read: [], counts: { exported: 2, dropped: 0 } });
    const [, body = ''] = /^[^{]*(\{.*\})$/s.exec(received) ?? [];
    const names = [...body.matchAll(/"name":"(\w+)"/g)].map(([, name]) => name);
    expect(names).to.deep.equal(['transitd', 'crypto', 'request']);
    expect([...body.matchAll(/"more than one character"/g)]).to.have.length(2);
    expect(received + errors).not.to.contain('variable');
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
