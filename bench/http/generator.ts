import { once } from 'node:events';
import { createHistogram } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import { usageOf } from './process-usage.ts';
import { latencyRange, type Order, type Report, type Run } from './run.ts';
import type { RunResult } from './summary.ts';

/** The load generator. It runs in threads of this process, so its CPU time is the CPU time of this process. */
export class Generator {
  readonly #threads: readonly Worker[];

  constructor(threads: number) {
    this.#threads = Array.from({ length: threads }, () => new Worker(new URL('generator-thread.ts', import.meta.url)));
  }

  /** @param pids - processes of the server whose CPU time and memory are read */
  async run(run: Run, pids: readonly number[]): Promise<RunResult> {
    const step = this.#threads.length;
    await this.#each((first) => {
      const share = (count: number): number => Math.floor(count / step) + (first < count % step ? 1 : 0);
      const requests = Number.isFinite(run.requests) ? share(run.requests) : run.requests;
      return { kind: 'open', run: { ...run, first, step, connections: share(run.connections), requests } };
    });
    const [before, ownBefore] = [usageOf(pids), process.cpuUsage()];
    const reports = await this.#each(() => ({ kind: 'go' }));
    const [after, own] = [usageOf(pids), process.cpuUsage(ownBefore)];
    const results = reports.flatMap((report) => (report.kind === 'done' ? [report.result] : []));
    const latencies = createHistogram(latencyRange);
    for (const result of results) if (result.latencies.count > 0) latencies.add(result.latencies);
    const sum = (of: 'requests' | 'failed'): number => results.reduce((total, result) => total + result[of], 0);
    return {
      requests: sum('requests'),
      failed: sum('failed'),
      failure: results.find(({ failure }) => failure !== undefined)?.failure,
      elapsedMs: Math.max(...results.map(({ elapsedMs }) => elapsedMs)),
      p50Us: latencies.count > 0 ? latencies.percentile(50) : undefined,
      p99Us: latencies.count > 0 ? latencies.percentile(99) : undefined,
      serverCpuUs: before && after && after.cpuUs - before.cpuUs,
      nodeCpuUs: after?.cpuUsEach.map((us, node) => us - (before?.cpuUsEach[node] ?? Number.NaN)) ?? [],
      serverResidentBytes: after?.residentBytes,
      generatorCpuUs: own.user + own.system,
      generatorBusy: Math.max(...results.map(({ busy }) => busy)),
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }

  /** Sends an order to each thread, and waits for all their reports. */
  #each(order: (index: number) => Order): Promise<Report[]> {
    return Promise.all(
      this.#threads.map(async (thread, index) => {
        const reported = once(thread, 'message');
        thread.postMessage(order(index));
        const [report] = await reported;
        return report as Report;
      }),
    );
  }
}
