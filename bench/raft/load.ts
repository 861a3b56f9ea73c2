import type { Driver } from '@transitd/raft-core';
import { percentile } from '../statistics.ts';
import type { Load, LoadRun, Orders } from './orders.ts';

/** Writes of `entryBytes` each, answered when they are applied. */
export function write<Result>(driver: Driver<Result>, { entryBytes, ...load }: Orders['write']['ask']): Promise<LoadRun> {
  return run(load, (done) => {
    driver.propose(Buffer.allocUnsafe(entryBytes).fill(0x5a), ({ kind }) => done(kind === 'applied'));
  });
}

export function readIndex<Result>(driver: Driver<Result>, load: Load): Promise<LoadRun> {
  return run(load, (done) => driver.readIndex(({ kind }) => done(kind === 'readable')));
}

/** A lease read is a synchronous call, so all clients are served in one event-loop turn, and again in the next one. */
export function leaseRead<Result>(driver: Driver<Result>, { clients, ms, requests }: Load): Promise<LoadRun> {
  return new Promise((resolve) => {
    const startedMs = performance.now();
    const turnsMs: number[] = [];
    let [done, failed] = [0, 0];
    const turn = (): void => {
      const turnMs = performance.now();
      if (turnMs - startedMs >= ms || done + failed >= requests) {
        resolve({ done, failed, ms: turnMs - startedMs, ...spread(turnsMs) });
        return;
      }
      for (let client = 0; client < clients; client++) {
        if (driver.leaseRead()) done += 1;
        else failed += 1;
      }
      turnsMs.push((performance.now() - turnMs) / clients);
      setImmediate(turn);
    };
    turn();
  });
}

function run({ clients, ms, requests }: Load, request: (done: (good: boolean) => void) => void): Promise<LoadRun> {
  return new Promise((resolve) => {
    const startedMs = performance.now();
    const latenciesMs: number[] = [];
    let [asked, failed, running] = [0, 0, clients];
    const end = (): void => {
      running -= 1;
      if (running > 0) return;
      resolve({ done: latenciesMs.length, failed, ms: performance.now() - startedMs, ...spread(latenciesMs) });
    };
    const client = (): void => {
      const askedMs = performance.now();
      if (askedMs - startedMs >= ms || asked >= requests) {
        end();
        return;
      }
      asked += 1;
      request((good) => {
        if (good) {
          latenciesMs.push(performance.now() - askedMs);
          client();
        } else {
          failed += 1;
          end();
        }
      });
    };
    for (let i = 0; i < clients; i++) client();
  });
}

const spread = (valuesMs: readonly number[]): Pick<LoadRun, 'p50Ms' | 'p99Ms'> => ({
  p50Ms: percentile(valuesMs, 50),
  p99Ms: percentile(valuesMs, 99),
});
