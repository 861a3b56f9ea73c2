import { until } from '../../../process/test/until.ts';
import { PrimarySession } from '../../src/sessions/primary-session.ts';
import { SecondarySession } from '../../src/sessions/secondary-session.ts';
import { type SessionEnd, sessionLimits } from '../../src/sessions/session-ports.ts';
import { decodeFrame } from '../../src/stream/frame-codec.ts';
import type { TestPrimary, TestSecondary } from './session-fixtures.ts';

/** Limits that small records reach. */
export const limits = { ...sessionLimits, frameBytes: 200, framesMax: 3 };

/** A connection in memory: frames wait in both directions until they are delivered. */
export class Link {
  readonly toPrimary: Buffer[] = [];
  readonly toSecondary: Buffer[] = [];
  readonly ends: Record<string, SessionEnd> = {};
  /** Kinds of all frames that were sent, `>` for those to the secondary. */
  readonly seen: string[] = [];
  nowMs = 1_000;
  readonly primary: PrimarySession;
  readonly secondary: SecondarySession;

  constructor(primary: TestPrimary, secondary: TestSecondary, id = 'east', own = limits) {
    const shared = { limits: own, clock: { nowMs: () => this.nowMs } };
    this.primary = new PrimarySession({
      ...shared,
      ...{ secondary: id, cluster: primary, registered: () => primary.registered(id), wire: this.#wire(this.toSecondary, '>') },
      onEnd: (end) => this.#ended('primary', end),
    });
    this.secondary = new SecondarySession({
      ...shared,
      ...{ cluster: secondary, wire: this.#wire(this.toPrimary, '<') },
      onEnd: (end) => this.#ended('secondary', end),
    });
  }

  #ended(side: string, end: SessionEnd): void {
    if (this.ends[side] !== undefined) throw new Error(`the ${side} ended twice`);
    this.ends[side] = end;
  }

  #wire(queue: Buffer[], mark: string) {
    return {
      send: (bytes: Uint8Array) => {
        this.seen.push(mark + decodeFrame(bytes).kind);
        queue.push(Buffer.from(bytes));
      },
      get unsentBytes() {
        return queue.reduce((sum, { length }) => sum + length, 0);
      },
      end: () => undefined,
    };
  }

  /** Delivers one frame in each direction; returns whether there was one. */
  deliver(): boolean {
    const [up, down] = [this.deliverUp(), this.deliverDown()];
    return up || down;
  }

  deliverUp(): boolean {
    const bytes = this.toPrimary.shift();
    if (bytes !== undefined) this.primary.received(decodeFrame(bytes));
    return bytes !== undefined;
  }

  deliverDown(): boolean {
    const bytes = this.toSecondary.shift();
    if (bytes !== undefined) this.secondary.received(decodeFrame(bytes));
    return bytes !== undefined;
  }

  /** Delivers frames, and lets both sides work, until the condition holds. */
  async until(condition: () => boolean): Promise<void> {
    await until(() => {
      while (this.deliver());
      return condition();
    });
  }

  cut(): void {
    this.primary.closed();
    this.secondary.closed();
  }
}
