import type { MonotonicClock } from '../roles/fence.ts';
import type { Frame } from '../stream/frame.ts';
import type { SessionLimits, Wire } from './session-ports.ts';

interface StateTransferParts {
  readonly limits: Pick<SessionLimits, 'framesMax' | 'unsentBytesMax'>;
  readonly wire: Pick<Wire, 'unsentBytes'>;
  readonly clock: MonotonicClock;
  readonly send: (frame: Frame) => void;
}

/** Sends the frames of a whole state. The number of frames that the secondary has not staged yet never exceeds the window. */
export class StateTransfer {
  readonly #parts: StateTransferParts;
  #attempt = '';
  #sent = 0;
  #staged = 0;
  #progressMs: number | undefined;
  #hasEnded = false;
  #wake: (() => void) | undefined;

  constructor(parts: StateTransferParts) {
    this.#parts = parts;
    this.#progressMs = parts.clock.nowMs();
  }

  /** When the secondary last staged a frame. Undefined once everything was sent, or the transfer has ended. */
  get progressMs(): number | undefined {
    return this.#progressMs;
  }

  /** Resolves when the last frame was sent, or `end` was called. @throws what `frames` throws */
  async run(frames: AsyncIterable<Frame>): Promise<void> {
    for await (const frame of frames) {
      if (frame.kind === 'records') {
        await this.#room();
        this.#attempt = frame.attempt;
        this.#sent += 1;
      }
      if (this.#hasEnded) return;
      this.#parts.send(frame);
    }
    this.#progressMs = undefined;
  }

  /** Called when the secondary has staged the records up to a chunk. */
  staged({ attempt, chunk }: Frame & { kind: 'staged' }): void {
    if (attempt !== this.#attempt || chunk < this.#staged || chunk >= this.#sent) return;
    this.#staged = chunk + 1;
    if (this.#progressMs !== undefined) this.#progressMs = this.#parts.clock.nowMs();
    this.continue();
  }

  /** Checks again whether the window has room for a frame. */
  continue(): void {
    this.#wake?.();
  }

  end(): void {
    this.#hasEnded = true;
    this.#progressMs = undefined;
    this.continue();
  }

  async #room(): Promise<void> {
    const { limits, wire } = this.#parts;
    const isFull = () => this.#sent - this.#staged >= limits.framesMax || wire.unsentBytes > limits.unsentBytesMax;
    while (!this.#hasEnded && isFull())
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }
}
