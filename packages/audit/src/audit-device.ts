import { setTimeout as pause } from 'node:timers/promises';
import type { Appendable } from './audit-file.ts';
import { chained, continued, type Link, lineHash, newRun } from './chain.ts';

/** An entry that waits for its place in the file. */
interface Waiting {
  readonly entry: string;
  readonly written: () => void;
  readonly failed: (error: Error) => void;
}

export interface AuditDeviceOptions {
  readonly name: string;
  readonly open: () => Promise<Appendable>;
  /** Every batch is on disk before its entries count as written. */
  readonly sync?: boolean;
  /** It has just failed; told once until it works again. */
  readonly onFailure?: (error: Error) => void;
  readonly onRecovery?: () => void;
  /** How long a write may take until its entries count as failed, in milliseconds. */
  readonly stuckMs?: number;
}

/**
 * One place where entries go, line by line. What comes in one turn of the event loop, or while a write is under way, leaves as one
 * write. After a failure the next entry opens it anew.
 */
export class AuditDevice {
  readonly name: string;
  readonly #options: AuditDeviceOptions;
  readonly #stuckMs: number;
  #target: Appendable | undefined;
  #link: Link | undefined;
  #torn = false;
  #waiting: Waiting[] = [];
  #reopens: (() => void)[] = [];
  #atWork = false;
  #drained: Promise<void> = Promise.resolve();
  /** The write under way takes too long: until it ends, nothing is taken. */
  #stuck = false;
  #failing = false;

  constructor(options: AuditDeviceOptions) {
    this.name = options.name;
    this.#options = options;
    this.#stuckMs = options.stuckMs ?? 5000;
  }

  /** @throws Error of the file system */
  async open(): Promise<void> {
    const target = await this.#options.open();
    this.#target = target;
    this.#link = continued(this.#link, target.tail);
    this.#torn = target.torn ?? this.#torn;
  }

  /** Resolves when the entry is written. @param entry - the text of a JSON object with members @throws Error */
  write(entry: string): Promise<void> {
    if (this.#stuck) return Promise.reject(stuck());
    return new Promise((written, failed) => {
      this.#waiting.push({ entry, written, failed });
      this.#work();
    });
  }

  /** Lets go of the file, which may have another name by now, and opens the one of its name; resolves when that was tried. */
  reopen(): Promise<void> {
    return new Promise((done) => {
      this.#reopens.push(done);
      this.#work();
    });
  }

  /** Writes what waits, unless that takes too long. */
  async close(): Promise<void> {
    await Promise.race([this.#drained, pause(this.#stuckMs, undefined, { ref: false })]);
    await this.#letGo();
  }

  #work(): void {
    if (this.#atWork) return;
    this.#atWork = true;
    this.#drained = new Promise((done) => setImmediate(() => void this.#drain().then(done)));
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0 || this.#reopens.length > 0) {
      const [batch, reopens] = [this.#waiting, this.#reopens];
      this.#waiting = [];
      this.#reopens = [];
      const deadline = setTimeout(() => this.#giveUp(batch), this.#stuckMs);
      try {
        if (batch.length > 0) await this.#append(batch);
        if (reopens.length > 0) {
          await this.#letGo();
          await this.open();
        }
        this.#recovered();
      } catch (error) {
        this.#fail(batch, error as Error);
      }
      clearTimeout(deadline);
      this.#stuck = false;
      for (const done of reopens) done();
    }
    this.#atWork = false;
  }

  async #append(batch: readonly Waiting[]): Promise<void> {
    if (this.#target === undefined) await this.open();
    const { target, lines, bytes, begins } = this.#laidOut(batch);
    let written = 0;
    let isSynced = this.#options.sync !== true;
    try {
      while (written < bytes.length) written += await target.write(bytes.subarray(written));
      if (!isSynced) await target.sync();
      isSynced = true;
    } finally {
      // A full disk may have taken some of the lines: they are in the file, and in the chain.
      if (written > 0) this.#torn = false;
      let end = begins;
      for (const { next, ends, waiting } of lines) {
        if (ends > written) break;
        end = ends;
        this.#link = next;
        if (isSynced) waiting.written();
      }
      if (end < written) {
        this.#torn = true;
        this.#link = newRun(lineHash(bytes.subarray(end, written)));
      }
    }
  }

  #laidOut(batch: readonly Waiting[]) {
    const { target, link } = { target: this.#target, link: this.#link };
    if (target === undefined || link === undefined) throw new Error('it is not open');
    const pieces: Buffer[] = this.#torn ? [Buffer.from('\n')] : [];
    const begins = pieces.length;
    let at = begins;
    let next = link;
    const lines = batch.map((waiting) => {
      const placed = chained(waiting.entry, next);
      next = placed.next;
      const piece = Buffer.from(`${placed.line}\n`);
      pieces.push(piece);
      at += piece.length;
      return { next, ends: at, waiting };
    });
    return { target, lines, bytes: Buffer.concat(pieces, at), begins };
  }

  #giveUp(batch: readonly Waiting[]): void {
    this.#stuck = true;
    this.#noteFailure(stuck());
    for (const { failed } of [...batch, ...this.#waiting.splice(0)]) failed(stuck());
  }

  #fail(batch: readonly Waiting[], error: Error): void {
    void this.#letGo();
    this.#noteFailure(error);
    for (const { failed } of batch) failed(error);
  }

  #noteFailure(error: Error): void {
    if (this.#failing) return;
    this.#failing = true;
    this.#options.onFailure?.(error);
  }

  #recovered(): void {
    if (!this.#failing) return;
    this.#failing = false;
    this.#options.onRecovery?.();
  }

  async #letGo(): Promise<void> {
    const target = this.#target;
    this.#target = undefined;
    await target?.close().catch(() => undefined); // nothing more is written to it
  }
}

const stuck = (): Error => new Error('a write takes too long');
