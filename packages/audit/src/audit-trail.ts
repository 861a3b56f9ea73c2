import type { Config } from '@transitd/configuration';
import { type Logger, StartError } from '@transitd/process';
import { openAuditFile } from './audit-file.ts';
import { openStdout } from './audit-stdout.ts';
import { Sink } from './sink.ts';

export type SinkConfig = Config['audit'][number];
export type EntryType = 'request' | 'response';

/** Hears how writing goes, so that figures can be made of it. Names of sinks come from the configuration. */
export interface AuditObserver {
  /** One sink has taken an entry, in so many milliseconds. */
  logged(type: EntryType, sink: string, ms: number): void;
  failed(type: EntryType, sink: string): void;
}

export interface AuditTrailOptions {
  readonly sinks: readonly SinkConfig[];
  readonly log: Logger;
  readonly observer: AuditObserver;
}

/** The sinks of this node. An entry counts as written as soon as one of them has it. */
export class AuditTrail {
  readonly devices: readonly SinkConfig[];
  readonly #sinks: readonly Sink[];
  readonly #observer: AuditObserver;
  readonly #log: Logger;
  #toldUnmade = false;

  private constructor({ sinks, log, observer }: AuditTrailOptions) {
    this.devices = sinks;
    this.#observer = observer;
    this.#log = log;
    this.#sinks = sinks.map((config) => sinkOf(config, log));
  }

  /** Undefined when the configuration names no sink. @throws StartError when one of them cannot be opened */
  static async open(options: AuditTrailOptions): Promise<AuditTrail | undefined> {
    if (options.sinks.length === 0) return undefined;
    const trail = new AuditTrail(options);
    for (const sink of trail.#sinks) {
      await sink.open().catch((error: NodeJS.ErrnoException) => {
        throw new StartError(`audit: the sink ${sink.name} cannot be opened: ${error.code ?? error.message}`);
      });
    }
    return trail;
  }

  get names(): readonly string[] {
    return this.#sinks.map(({ name }) => name);
  }

  /**
   * Resolves when one sink has written its entry.
   * @param entryFor - the text for the sink of this name
   * @throws AggregateError when none did
   */
  async write(type: EntryType, entryFor: (sink: string) => string): Promise<void> {
    const begunMs = performance.now();
    await Promise.any(
      this.#sinks.map(async (sink) => {
        try {
          await sink.write(this.#made(() => entryFor(sink.name)));
          this.#observer.logged(type, sink.name, performance.now() - begunMs);
        } catch (error) {
          this.#observer.failed(type, sink.name);
          throw error;
        }
      }),
    );
  }

  /** An entry has no text to be written: no key yet, or a fault of ours. Told once until one has. */
  unmade(error: unknown): void {
    if (this.#toldUnmade) return;
    this.#toldUnmade = true;
    this.#log.error({ reason: error instanceof Error ? error.message : String(error) }, 'audit: an entry could not be made');
  }

  #made(make: () => string): string {
    try {
      const text = make();
      this.#toldUnmade = false;
      return text;
    } catch (error) {
      this.unmade(error);
      throw error;
    }
  }

  /** Files that were given another name are let go, and new ones begun. */
  async reopen(): Promise<void> {
    await Promise.all(this.#sinks.map((sink) => sink.reopen()));
  }

  async close(): Promise<void> {
    await Promise.all(this.#sinks.map((sink) => sink.close()));
  }
}

function sinkOf(config: SinkConfig, log: Logger): Sink {
  const { name } = config;
  return new Sink({
    name,
    open: config.type === 'stdout' ? openStdout : () => openAuditFile(config),
    sync: config.type === 'file' && config.sync,
    onFailure: (error) =>
      log.error({ sink: name, reason: reasonOf(error) }, 'audit: this sink takes no entries; it is tried again'),
    onRecovery: () => log.info({ sink: name }, 'audit: this sink takes entries again'),
  });
}

/** Errors of the file system by their code: messages would name paths, and nothing else is worth more. */
const reasonOf = (error: Error): string => (error as NodeJS.ErrnoException).code ?? error.message;
