import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { World } from './world.ts';

export type Totals = Readonly<Record<string, number>>;

/** Plays one seed and returns how often each thing happened. @throws Violation, InvariantViolation when a rule is broken */
export async function play(seed: number): Promise<Totals> {
  const folder = mkdtempSync(join(tmpdir(), 'replication-'));
  const world = await World.create({ seed, folder, faultyMs: 3_000 });
  try {
    await world.play();
    return {
      ...world.counts,
      ...world.sessions.counts,
      ...world.material.counts,
      ...world.restores.counts,
      ...world.departures.counts,
      ...world.promotions.counts,
    };
  } finally {
    await world.close();
    rmSync(folder, { recursive: true });
  }
}
