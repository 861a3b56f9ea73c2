import { setTimeout as pause } from 'node:timers/promises';
import { type Steps, turnEnd } from '@transitd/event-loop';
import type { Appendable, Fate, FileChange } from './audit-file.ts';
import { continueChain, type Link, lineHash, linkEntry, newRun } from './chain.ts';

/** An entry that is not written yet. */
interface PendingEntry {
  readonly entry: string;
  readonly written: () => void;
  readonly failed: (error: Error) => void;
}

/** Entries as the bytes to write. */
interface Layout {
  readonly target: Appendable;
  /** `ends`: where the line ends in the bytes; `next`: the end of the chain after it. */
  readonly lines: readonly { readonly next: Link; readonly ends: number; readonly pending: PendingEntry }[];
  readonly bytes: Buffer;
  /** Where the first line begins. */
  readonly begins: number;
}

/** `writes`: the device writes nothing. `path`: it goes on in the file that is open, because it cannot check or open the path. */
export type Failure = 'writes' | 'path';

export interface AuditDeviceOptions {
  readonly name: string;
  readonly open: () => Promise<Appendable>;
  /** Sync each batch to disk before its entries count as written. */
  readonly sync?: boolean;
  /** Called once for each failure, and again only after the device has recovered from it. */
  readonly onFailure?: (error: Error, failure: Failure) => void;
  readonly onRecovery?: () => void;
  /** Called once when somebody has renamed, removed or truncated the target. */
  readonly onChange?: (change: FileChange) => void;
  /** After this many milliseconds the entries of a write count as failed; 5000 by default. */
  readonly writeTimeoutMs?: number;
}

/**
 * Writes entries to one target, a line each. The entries of one event-loop turn are written together, and so are the entries that arrive
 * during a write. After a failure the next entry opens the target again. So does a check that finds that the path leads elsewhere.
 */
export class AuditDevice {
  readonly name: string;
  readonly #options: AuditDeviceOptions;
  readonly #writeTimeoutMs: number;
  #target: Appendable | undefined;
  #link: Link | undefined;
  #lastLineTorn = false;
  #pending: PendingEntry[] = [];
  #pendingChecks: { readonly reopens: boolean; readonly done: () => void }[] = [];
  /** Lines that were appended to a file after its removal, perhaps; the next target gets them. Until then, no target is open. */
  #orphans: Buffer = nothing;
  /** The end of the target that no sync has confirmed. A failed sync may have lost it. */
  #unsynced: Buffer = nothing;
  #isDraining = false;
  /** The write in progress has timed out. Entries are refused until it ends. */
  #isStuck = false;
  #failing: Failure | undefined;

  constructor(options: AuditDeviceOptions) {
    this.name = options.name;
    this.#options = options;
    this.#writeTimeoutMs = options.writeTimeoutMs ?? 5000;
  }

  /**
   * Opens the target, and closes the one before, which remains open if this fails. A node does not start if its target cannot be opened.
   * @throws Error of the file system
   */
  async open(): Promise<void> {
    const target = await this.#options.open();
    this.#lastLineTorn = target.torn ?? this.#lastLineTorn;
    const endsAsWritten = target.tail !== undefined && target.tail === this.#link?.prev;
    try {
      if (endsAsWritten && this.#unsynced.length > 0) await target.rewriteEnd?.(this.#unsynced);
      if (this.#orphans.length > 0 && !endsAsWritten) await this.#adoptOrphans(target);
      else this.#link = continueChain(this.#link, target.tail);
    } catch (error) {
      await target.close().catch(() => undefined);
      throw error;
    }
    this.#orphans = this.#unsynced = nothing;
    await this.#closeTarget();
    this.#target = target;
  }

  /** Resolves when the entry is written. @param entry - the text of a JSON object that has members @throws Error */
  write(entry: string): Promise<void> {
    if (this.#isStuck) return Promise.reject(timedOut());
    return new Promise((written, failed) => {
      this.#pending.push({ entry, written, failed });
      this.#startDraining();
    });
  }

  /**
   * Closes the file, which log rotation has renamed and perhaps moves or compresses next, and opens the configured path. Entries fail until
   * the path can be opened. Resolves after the attempt, failed or not.
   */
  reopen(): Promise<void> {
    return this.#check({ reopens: true });
  }

  /**
   * Opens the configured path if somebody has renamed or removed the file, so that no later entry goes to a file that nobody finds. Entries
   * that were written since the last check and have gone with the file are written again. Resolves after the attempt, failed or not.
   */
  check(): Promise<void> {
    return this.#check({ reopens: false });
  }

  /** Writes the pending entries, unless that takes longer than the write timeout, and closes the target. */
  async close(): Promise<void> {
    await Promise.race([this.check(), pause(this.#writeTimeoutMs, undefined, { ref: false })]);
    await this.#closeTarget();
  }

  #check({ reopens }: { readonly reopens: boolean }): Promise<void> {
    return new Promise((done) => {
      this.#pendingChecks.push({ reopens, done });
      this.#startDraining();
    });
  }

  #startDraining(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    setImmediate(() => void this.#drain());
  }

  async #drain(): Promise<void> {
    while (this.#pending.length > 0 || this.#pendingChecks.length > 0) {
      const [batch, checks] = [this.#pending, this.#pendingChecks];
      this.#pending = [];
      this.#pendingChecks = [];
      const deadline = setTimeout(() => this.#timeOut(batch), this.#writeTimeoutMs);
      if (batch.length > 0) await this.#append(batch).catch((error: Error) => this.#fail(batch, error));
      if (checks.length > 0)
        await this.#inspect(checks.some(({ reopens }) => reopens)).catch((error: Error) =>
          this.#noteFailure(error, this.#target === undefined ? 'writes' : 'path'),
        );
      clearTimeout(deadline);
      this.#isStuck = false;
      for (const { done } of checks) done();
    }
    this.#isDraining = false;
  }

  /** Looks for changes of the target. Opens the path again if it leads elsewhere, if `reopens`, or if lines have to be written again. */
  async #inspect(reopens: boolean): Promise<void> {
    const state = await this.#askFate();
    if (reopens) await this.#closeTarget();
    const areLinesWaiting = this.#orphans.length > 0 || this.#unsynced.length > 0;
    if (reopens || state === 'renamed' || state === 'removed' || areLinesWaiting) await this.open();
    // Log rotation renames the file, and then asks for this.
    if (state === 'renamed' && !reopens) this.#options.onChange?.(state);
    if (this.#target !== undefined) this.#recovered();
  }

  /** Checks the target. Closes one that was removed, because nobody finds later entries, and keeps its lines for the next target. */
  async #askFate(): Promise<Fate['state'] | undefined> {
    const fate = await this.#target?.fate?.();
    if (fate?.state === 'removed') {
      this.#orphans = fate.since;
      await this.#closeTarget();
    }
    if (fate?.state === 'removed' || fate?.state === 'truncated') this.#options.onChange?.(fate.state);
    return fate?.state;
  }

  /** Writes the lines that have gone with a file. The chain continues after them. */
  async #adoptOrphans(target: Appendable): Promise<void> {
    this.#unsynced = nothing; // this target does not end with them
    const bytes = this.#lastLineTorn ? Buffer.concat([newline, this.#orphans]) : this.#orphans;
    for (let written = 0; written < bytes.length; ) written += await target.write(bytes.subarray(written));
    if (this.#options.sync === true) {
      this.#unsynced = bytes;
      await target.sync();
    }
    this.#lastLineTorn = bytes.at(-1) !== newline[0];
  }

  async #append(batch: readonly PendingEntry[]): Promise<void> {
    if (this.#target === undefined) await this.open();
    const { target, lines, bytes, begins } = await inTurns(this.#layOut(batch));
    let written = 0;
    let isSynced = this.#options.sync !== true;
    try {
      while (written < bytes.length) written += await target.write(bytes.subarray(written));
      if (!isSynced) await target.sync();
      isSynced = true;
      if (this.#failing === 'writes') this.#recovered();
    } finally {
      this.#unsynced = isSynced ? nothing : bytes.subarray(0, written);
      // Before the disk was full, it may have stored some of the lines. They are in the file, so they are part of the chain.
      if (written > 0) this.#lastLineTorn = false;
      let end = begins;
      for (const { next, ends, pending } of lines) {
        if (ends > written) break;
        end = ends;
        this.#link = next;
        if (isSynced) pending.written();
      }
      if (end < written) {
        this.#lastLineTorn = true;
        this.#link = newRun(lineHash(bytes.subarray(end, written)));
      }
    }
  }

  *#layOut(batch: readonly PendingEntry[]): Steps<Layout> {
    const { target, link } = { target: this.#target, link: this.#link };
    if (target === undefined || link === undefined) throw new Error('the device is not open');
    const pieces = this.#lastLineTorn ? [newline] : [];
    const begins = pieces.length;
    let at = begins;
    let next = link;
    const lines: Layout['lines'][number][] = [];
    for (const pending of batch) {
      const placed = yield* linkEntry(pending.entry, next);
      next = placed.next;
      pieces.push(placed.line, newline);
      at += placed.line.length + newline.length;
      lines.push({ next, ends: at, pending });
    }
    return { target, lines, bytes: Buffer.concat(pieces, at), begins };
  }

  #timeOut(batch: readonly PendingEntry[]): void {
    this.#isStuck = true;
    this.#noteFailure(timedOut(), 'writes');
    for (const { failed } of [...batch, ...this.#pending.splice(0)]) failed(timedOut());
  }

  /** Refuses the entries, and closes the target: the next entry opens it again. */
  async #fail(batch: readonly PendingEntry[], error: Error): Promise<void> {
    this.#noteFailure(error, 'writes');
    for (const { failed } of batch) failed(error);
    const state = await this.#askFate().catch(() => undefined);
    if (state === 'renamed') this.#options.onChange?.(state);
    await this.#closeTarget();
  }

  #noteFailure(error: Error, failure: Failure): void {
    if (this.#failing === failure || this.#failing === 'writes') return;
    this.#failing = failure;
    this.#options.onFailure?.(error, failure);
  }

  #recovered(): void {
    if (this.#failing === undefined) return;
    this.#failing = undefined;
    this.#options.onRecovery?.();
  }

  async #closeTarget(): Promise<void> {
    const target = this.#target;
    this.#target = undefined;
    await target?.close().catch(() => undefined); // from here on, nothing is written to this target
  }
}

const newline = Buffer.from('\n');
const nothing = Buffer.alloc(0);

/** Runs each step in a turn of its own. The steps do not queue with the work of requests, because all requests wait for the device. */
async function inTurns<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await turnEnd();
  }
}

const timedOut = (): Error => new Error('the write timed out');
