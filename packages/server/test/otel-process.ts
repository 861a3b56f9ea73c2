// `node otel-process.ts ENDPOINT`: what a node without and with a collector loads of OpenTelemetry, and the `OTEL_*` variables it reads.
// Prints JSON, after one trace was sent to the collector.
import { registerHooks } from 'node:module';
import { pino } from 'pino';

const loaded = new Set<string>();
registerHooks({
  load: (url, context, nextLoad) => {
    const [, name] = /\/node_modules\/(@opentelemetry\/[^/]+)\//.exec(url) ?? [];
    if (name !== undefined) loaded.add(name);
    return nextLoad(url, context);
  },
});
const read: string[] = [];
const noted = (name: string | symbol): void => {
  if (typeof name === 'string' && name.startsWith('OTEL_')) read.push(name);
};
process.env = new Proxy(process.env, {
  get: (variables, name) => {
    noted(name);
    return Reflect.get(variables, name);
  },
  has: (variables, name) => {
    noted(name);
    return Reflect.has(variables, name);
  },
});

await import('../src/run-server.ts');
const { openTracing } = await import('../src/tracing/tracing.ts');
const log = pino({ enabled: false });
const counts = { exported: 0, dropped: 0 };
const count =
  (what: keyof typeof counts) =>
  (spans: number): void => {
    counts[what] += spans;
  };
const counters = { exported: count('exported'), dropped: count('dropped') };
const off = await openTracing({ node_id: 'n1', tracing: { sample_one_in: 1 } }, log, counters);
const loadedOff = [...loaded].sort();
const on = await openTracing({ node_id: 'n1', tracing: { endpoint: process.argv[2], sample_one_in: 1 } }, log, counters);
const request = on?.tracer.request({});
for (const name of ['first', 'second']) request?.set(name, 'more than one character');
request?.child('crypto').end();
request?.end();
await on?.close();
console.log(JSON.stringify({ off: off !== undefined, loadedOff, loadedOn: [...loaded].sort(), read, counts }));
