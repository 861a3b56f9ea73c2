// Plays many seeds of the simulator on all cores.
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { CoverageEvent, Profile, RunResult } from '../packages/raft-sim/src/cluster/index.ts';
import { ownPackages } from './sim-player.ts';

export interface Job {
  readonly seed: number;
  readonly profile: Profile;
  readonly events: number;
  /** Whether the faults of the second stream are injected too. */
  readonly extra?: boolean;
}

export interface Outcome extends Omit<RunResult, 'coverage'> {
  readonly profile: Profile;
  readonly extra: boolean;
  readonly coverage: readonly (readonly [CoverageEvent, number])[];
}

export interface PoolOptions {
  /** The folder of the packages to simulate. */
  readonly packages?: string;
  readonly threads?: number;
  /** Jobs sent to a thread at a time. */
  readonly batch?: number;
}

/** A seed takes a fraction of a second; a batch that takes as long as this holds one that would never end. */
const BATCH_MS = 240_000;

/**
 * Plays the jobs, in no fixed order; `onOutcome` receives each outcome and may stop the rest.
 * @throws Error that names the jobs of a batch that does not end
 */
export async function playSeeds(
  jobs: Iterable<Job>,
  onOutcome: (outcome: Outcome) => 'stop' | undefined,
  { packages = ownPackages, threads = availableParallelism(), batch = 5 }: PoolOptions = {},
): Promise<void> {
  const queue = jobs[Symbol.iterator]();
  let stopped = false;
  const next = (): Job[] => {
    const taken: Job[] = [];
    while (!stopped && taken.length < batch) {
      const { value, done } = queue.next();
      if (done === true) break;
      taken.push(value);
    }
    return taken;
  };
  const thread = async (): Promise<void> => {
    const worker = new Worker(new URL('./sim-worker.ts', import.meta.url), { workerData: { packages } });
    let limit: NodeJS.Timeout | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        const give = (): void => {
          const taken = next();
          clearTimeout(limit);
          if (taken.length === 0) {
            resolve();
            return;
          }
          const names = taken.map(commandOf).join('\n');
          limit = setTimeout(() => reject(new Error(`one of these does not end:\n${names}`)), BATCH_MS);
          worker.postMessage(taken);
        };
        worker.on('error', reject);
        worker.on('message', (outcomes: readonly Outcome[]) => {
          for (const outcome of outcomes) if (!stopped && onOutcome(outcome) === 'stop') stopped = true;
          give();
        });
        give();
      });
    } finally {
      clearTimeout(limit);
      await worker.terminate();
    }
  };
  await Promise.all(Array.from({ length: threads }, thread));
}

export function* seedsFrom(first: number, count: number, job: Omit<Job, 'seed'>): Generator<Job> {
  for (let seed = first; seed < first + count; seed++) yield { ...job, seed };
}

/** Returns the command that plays a job again. */
export const commandOf = ({ seed, profile, events, extra = false }: Job): string =>
  `npm run sim -- --seed ${seed} --profile ${profile} --events ${events}${extra ? ' --extra' : ''}`;

/** @throws Error for an unknown profile */
export function profileNamed(name: string): Profile {
  if (name !== 'core' && name !== 'driver' && name !== 'storage')
    throw new Error(`unknown profile ${name}: use core, driver or storage`);
  return name;
}
