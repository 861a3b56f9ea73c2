// A thread of the load generator. Each of its connections always has one request in flight. It records how long each request took.
import * as http from 'node:http';
import * as https from 'node:https';
import { createHistogram, performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';
import { latencyRange, type Order, type Report, type ThreadResult, type ThreadRun } from './run.ts';

const requestTimeoutMs = 30_000;
/** Pause after a failed connection. Without it, a server that refuses connections would turn the run into a busy loop. */
const pauseAfterBreakMs = 10;

let opened: { readonly run: ThreadRun; readonly send: () => Promise<string | undefined>; readonly close: () => void } | undefined;

parentPort?.on('message', async (order: Order) => {
  if (order.kind === 'open') {
    opened = { run: order.run, ...sender(order.run) };
    const { send } = opened;
    await Promise.all(Array.from({ length: order.run.connections }, () => send()));
    report({ kind: 'opened' });
  } else if (opened !== undefined) {
    const result = await measure(opened.run, opened.send);
    opened.close();
    report({ kind: 'done', result });
  }
});

function report(message: Report): void {
  parentPort?.postMessage(message);
}

async function measure(
  { connections, seconds, requests }: ThreadRun,
  send: () => Promise<string | undefined>,
): Promise<ThreadResult> {
  const latencies = createHistogram(latencyRange);
  const before = performance.eventLoopUtilization();
  const startMs = performance.now();
  const endMs = startMs + 1000 * seconds;
  let [begun, failed] = [0, 0];
  let failure: string | undefined;
  const connection = async (): Promise<void> => {
    for (let sentMs = startMs; begun < requests && sentMs < endMs; ) {
      begun += 1;
      sentMs = performance.now();
      const fault = await send();
      const answeredMs = performance.now();
      if (fault === undefined) latencies.record(Math.max(1, Math.round(1000 * (answeredMs - sentMs))));
      else {
        failed += 1;
        failure ??= fault;
        if (!/^\d/.test(fault)) await delay(pauseAfterBreakMs);
      }
      sentMs = answeredMs;
    }
  };
  await Promise.all(Array.from({ length: connections }, connection));
  const elapsedMs = performance.now() - startMs;
  const { utilization } = performance.eventLoopUtilization(before);
  return { requests: begun, failed, failure, elapsedMs, latencies, busy: utilization };
}

/** Returns a function that sends the next request of the run, and resolves with its error, or with undefined. */
function sender(run: ThreadRun): { readonly send: () => Promise<string | undefined>; readonly close: () => void } {
  const { hostname, port, protocol } = new URL(run.url);
  const isTls = protocol === 'https:';
  const { request } = isTls ? https : http;
  const pool = { keepAlive: true, maxSockets: run.connections };
  const agent = isTls ? new https.Agent({ ...pool, ca: run.authority }) : new http.Agent(pool);
  const body = run.body === undefined ? undefined : Buffer.from(run.body);
  const headers = {
    ...(run.token !== '' && { 'x-vault-token': run.token }),
    ...(body && { 'content-type': 'application/json', 'content-length': body.byteLength }),
  };
  const options = { agent, hostname, port, method: run.method, headers, timeout: requestTimeoutMs };
  let next = run.first;
  const pathOfNext = (): string => {
    const n = run.spread === undefined ? next : next % run.spread;
    next += run.step;
    return `/v1/${run.path.replace('{n}', String(n))}`;
  };
  const send = (): Promise<string | undefined> =>
    new Promise((resolve) => {
      const broken = (error: NodeJS.ErrnoException): void => resolve(error.code ?? error.message);
      const sent = request({ ...options, path: pathOfNext() }, (response) => {
        const status = response.statusCode ?? 0;
        response.on('error', broken);
        response.on('end', () => resolve(status >= 200 && status <= 299 ? undefined : String(status)));
        response.resume();
      });
      sent.on('error', broken);
      sent.on('timeout', () => sent.destroy(new Error('timeout')));
      sent.end(body);
    });
  return { send, close: () => agent.destroy() };
}
