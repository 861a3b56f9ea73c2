import { createWriteStream } from 'node:fs';
import { request } from 'node:http';
import { performance } from 'node:perf_hooks';
import { pipeline } from 'node:stream/promises';
import type { ApiServer } from '../http/api-server.ts';
import type { Generator } from '../http/generator.ts';
import { median } from '../statistics.ts';

/** A request that is sent again and again; `{n}` in the path counts up, and begins again after `spread`. */
export interface Repeated {
  readonly path: string;
  readonly body?: object;
  readonly spread?: number;
}

/** Time of a request in the server: CPU time of all threads, and the median time to its response. And how many it served per second. */
export interface Cost {
  readonly cpuUs: number;
  readonly p50Ms: number;
  readonly perSecond: number;
}

const longestS = 24 * 3600;

/** Sends `count` POST requests over many connections. @throws Error if one fails */
export async function fill(
  generator: Generator,
  server: ApiServer,
  { path, body = {}, spread }: Repeated,
  { count, connections }: { readonly count: number; readonly connections: number },
): Promise<Cost> {
  const { url, token, pids } = server;
  const {
    requests,
    failed,
    failure,
    elapsedMs,
    serverCpuUs = Number.NaN,
    p50Us = Number.NaN,
  } = await generator.run(
    {
      ...{ url, token, path, spread, connections, method: 'POST', authority: undefined },
      ...{ body: JSON.stringify(body), seconds: longestS, requests: count },
    },
    pids,
  );
  if (failed > 0) throw new Error(`${failed} of ${requests} requests failed: ${path}: ${failure}`);
  return { cpuUs: serverCpuUs / requests, p50Ms: p50Us / 1000, perSecond: (1000 * requests) / elapsedMs };
}

/** Returns the time of a GET until its last byte arrived, in ms, and the length of its body. */
export async function timed(
  server: ApiServer,
  path: string,
  to?: string,
): Promise<{ readonly ms: number; readonly bytes: number }> {
  const begunMs = performance.now();
  let bytes = 0;
  await new Promise<void>((resolve, reject) => {
    request(`${server.url}/v1/${path}`, { headers: { 'x-vault-token': server.token } }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`GET ${path}: ${response.statusCode}`));
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      if (to === undefined) response.once('end', resolve).once('error', reject);
      else pipeline(response, createWriteStream(to)).then(resolve, reject);
    })
      .once('error', reject)
      .end();
  });
  return { ms: performance.now() - begunMs, bytes };
}

/** Returns the median of several such times. */
export async function medianMs(server: ApiServer, path: string): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < 5; i++) times.push((await timed(server, path)).ms);
  return median(times);
}

/** Returns the JavaScript heap in use and the buffers outside of it, in MiB. Garbage that is not collected yet counts too. */
export async function heapOf(server: ApiServer): Promise<number> {
  const response = await fetch(`${server.url}/v1/sys/metrics?format=prometheus`, { headers: { 'x-vault-token': server.token } });
  const text = await response.text();
  const bytes = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  return (bytes('nodejs_heap_size_used_bytes') + bytes('nodejs_external_memory_bytes')) / 2 ** 20;
}
