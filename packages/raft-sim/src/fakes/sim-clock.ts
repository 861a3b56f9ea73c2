import { type Clock, invariant } from '@transitd/raft-core';

/** A clock on which simulated devices can also plan their own work. */
export interface Scheduler extends Clock {
  after(delayMs: number, task: () => void): void;
}

interface Planned {
  readonly atMs: number;
  /** Breaks ties by the order of planning, so that the order of all events is total. */
  readonly sequence: number;
  readonly task: () => void;
}

/** Implements `Clock.every` by `after`; also ends when the scheduler drops its planned tasks. */
export function repeatedly(scheduler: Pick<Scheduler, 'after'>, intervalMs: number, task: () => void): () => void {
  let ended = false;
  const tick = (): void => {
    if (ended) return;
    task();
    scheduler.after(intervalMs, tick);
  };
  scheduler.after(intervalMs, tick);
  return () => {
    ended = true;
  };
}

/** Virtual time: a heap of planned tasks, run one by one. Every event of a simulation is a task of one such clock. */
export class SimClock implements Scheduler {
  #nowMs = 0;
  #sequence = 0;
  readonly #heap: Planned[] = [];

  now(): number {
    return this.#nowMs;
  }

  after(delayMs: number, task: () => void): void {
    invariant(delayMs >= 0, 'tasks are planned ahead', { delayMs });
    this.#push({ atMs: this.#nowMs + delayMs, sequence: this.#sequence++, task });
  }

  afterTurn(task: () => void): void {
    this.after(0, task);
  }

  every(intervalMs: number, task: () => void): () => void {
    return repeatedly(this, intervalMs, task);
  }

  /** Lets the running task take this long: tasks planned earlier than that run late. */
  spend(ms: number): void {
    this.#nowMs += ms;
  }

  /** Runs the next task; returns false if no task is left. */
  step(): boolean {
    const next = this.#pop();
    if (next === undefined) return false;
    this.#nowMs = Math.max(this.#nowMs, next.atMs);
    next.task();
    return true;
  }

  /** Runs tasks until the condition holds. @throws InvariantViolation after `tasksMax` tasks, or when none is left */
  runUntil(condition: () => boolean, tasksMax = 100_000): void {
    for (let ran = 0; !condition(); ran++) {
      invariant(ran < tasksMax && this.step(), 'the awaited condition holds in time', { ran, nowMs: this.#nowMs });
    }
  }

  /** Runs all tasks of the next `ms` milliseconds. */
  runFor(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (let next = this.#heap[0]; next !== undefined && next.atMs <= endMs; next = this.#heap[0]) this.step();
    this.#nowMs = Math.max(this.#nowMs, endMs);
  }

  #push(planned: Planned): void {
    const heap = this.#heap;
    let child = heap.length;
    for (let parent = (child - 1) >> 1; child > 0; parent = (child - 1) >> 1) {
      const above = heap[parent];
      if (above === undefined || isBefore(above, planned)) break;
      heap[child] = above;
      child = parent;
    }
    heap[child] = planned;
  }

  #pop(): Planned | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let hole = 0;
    for (;;) {
      const [left, right] = [heap[2 * hole + 1], heap[2 * hole + 2]];
      if (left === undefined) break;
      const smaller = right !== undefined && isBefore(right, left) ? right : left;
      if (isBefore(last, smaller)) break;
      heap[hole] = smaller;
      hole = smaller === left ? 2 * hole + 1 : 2 * hole + 2;
    }
    heap[hole] = last;
    return first;
  }
}

const isBefore = (a: Planned, b: Planned): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.sequence < b.sequence);

/** One incarnation of a simulated process; its planned tasks end with it. */
export class SimProcess implements Scheduler {
  readonly #clock: SimClock;
  #alive = true;

  constructor(clock: SimClock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  after(delayMs: number, task: () => void): void {
    this.#clock.after(delayMs, () => {
      if (this.#alive) task();
    });
  }

  afterTurn(task: () => void): void {
    this.after(0, task);
  }

  every(intervalMs: number, task: () => void): () => void {
    return repeatedly(this, intervalMs, task);
  }

  kill(): void {
    this.#alive = false;
  }
}
