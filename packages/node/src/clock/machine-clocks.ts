import { uptime } from 'node:os';
import type { ClockReading } from '@transitd/raft-core';

export function readWallClock(): ClockReading {
  const beforeMs = performance.now();
  const wallMs = Date.now();
  return { beforeMs, wallMs, afterMs: performance.now() };
}

/** Reads the time since boot too, for which it opens a system file. */
export function readClocks(): ClockReading {
  const beforeMs = performance.now();
  const [wallMs, bootMs] = [Date.now(), 1000 * uptime()];
  return { beforeMs, wallMs, bootMs, afterMs: performance.now() };
}
