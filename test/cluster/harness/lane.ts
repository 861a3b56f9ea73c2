import type { Socket } from 'node:net';

/**
 * A slow link. Its loss is that of a network below TCP: nothing is missing in the stream, but a lost segment, and every byte after it,
 * arrives only after it has been sent again.
 */
export interface SlowLink {
  readonly delayMs: number;
  /** Share of the segments that are lost, from 0 to 1; none by default. */
  readonly loss?: number;
}

/** The fate of bytes in one direction: they pass at once, pass later, are lost, or wait until this setting changes. */
export type Treatment = 'pass' | 'swallow' | 'hold' | SlowLink;

const segmentBytes = 1448;
/** With fewer segments in flight, no duplicate acknowledgements report the loss, and the sender waits for its timer. */
const reportingSegments = 4;
/** The least time by which the retransmission timer of Linux exceeds the round trip. */
const retransmissionMs = 200;

/**
 * Returns for how long the loss of segments holds a piece of the stream up: a round trip, and the timer if too few segments follow.
 * Segments that are lost in one piece are sent again together.
 */
function stallMs({ delayMs, loss = 0 }: SlowLink, bytes: number): number {
  const segments = Math.ceil(bytes / segmentBytes);
  if (Math.random() >= 1 - (1 - loss) ** segments) return 0;
  return 2 * delayMs + (segments < reportingSegments ? retransmissionMs : 0);
}

interface Parcel {
  readonly dueMs: number;
  /** Null: the sender has closed. */
  readonly chunk: Buffer | null;
}

/**
 * One direction of one connection. It keeps the order of the bytes under changing treatments. After it lost bytes it never passes
 * any again, because the receiver would take later bytes for the missing ones.
 */
export class Lane {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #queue: Parcel[] = [];
  #treatment: Treatment;
  #timer: NodeJS.Timeout | undefined;
  #lossy = false;

  constructor(from: Socket, to: Socket, treatment: Treatment) {
    this.#from = from;
    this.#to = to;
    this.#treatment = treatment;
    from.on('data', (chunk: Buffer) => this.#take(chunk));
    from.on('end', () => this.#take(null));
    to.on('drain', () => this.#listen());
    this.#listen();
  }

  /** Whether bytes were lost. */
  get lossy(): boolean {
    return this.#lossy;
  }

  get swallows(): boolean {
    return this.#treatment === 'swallow';
  }

  treat(treatment: Treatment): void {
    this.#treatment = treatment;
    if (treatment === 'swallow' && this.#queue.length > 0) {
      this.#queue.length = 0;
      this.#lossy = true;
    }
    this.#listen();
    this.#deliver();
  }

  /** Called when the sender has disappeared without closing. Returns whether the receiver may learn that now. */
  breaks(): boolean {
    const hidden = this.#treatment === 'swallow' || this.#treatment === 'hold';
    this.#lossy ||= hidden;
    return !hidden;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#queue.length = 0;
  }

  #take(chunk: Buffer | null): void {
    if (this.#treatment === 'swallow') {
      this.#lossy = true;
      return;
    }
    const link = typeof this.#treatment === 'object' ? this.#treatment : { delayMs: 0 };
    const inOrderMs = Math.max(performance.now() + link.delayMs, this.#queue.at(-1)?.dueMs ?? 0);
    this.#queue.push({ dueMs: inOrderMs + stallMs(link, chunk?.length ?? 0), chunk });
    this.#deliver();
  }

  #deliver(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#treatment === 'hold' || this.#treatment === 'swallow' || this.#to.destroyed) return;
    for (let first = this.#queue[0]; first !== undefined; first = this.#queue[0]) {
      const waitMs = this.#treatment === 'pass' ? 0 : first.dueMs - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#deliver(), waitMs);
        return;
      }
      this.#queue.shift();
      if (first.chunk === null) this.#to.end();
      else if (!this.#to.write(first.chunk)) this.#from.pause();
    }
  }

  #listen(): void {
    if (this.#treatment === 'hold') this.#from.pause();
    else if (!this.#to.writableNeedDrain || this.#treatment === 'swallow') this.#from.resume();
  }
}
