import type { Config } from '@transitd/configuration';
import { type Logger, StartError } from '@transitd/process';
import { AuditDevice } from './audit-device.ts';
import { openAuditFile } from './audit-file.ts';
import { openStdout } from './audit-stdout.ts';

export type AuditDeviceConfig = Config['audit'][number];
export type EntryType = 'request' | 'response';

/** Hears how writing goes, so that figures can be made of it. Names of sinks come from the configuration. */
export interface AuditObserver {
  /** One sink has taken an entry, in so many milliseconds. */
  logged(type: EntryType, device: string, ms: number): void;
  failed(type: EntryType, device: string): void;
}

export interface AuditDevicesOptions {
  readonly devices: readonly AuditDeviceConfig[];
  readonly log: Logger;
  readonly observer: AuditObserver;
}

/** The sinks of this node. An entry counts as written as soon as one of them has it. */
export class AuditDevices {
  readonly configs: readonly AuditDeviceConfig[];
  readonly #devices: readonly AuditDevice[];
  readonly #observer: AuditObserver;
  readonly #log: Logger;
  #toldUnmade = false;

  private constructor({ devices, log, observer }: AuditDevicesOptions) {
    this.configs = devices;
    this.#observer = observer;
    this.#log = log;
    this.#devices = devices.map((config) => deviceOf(config, log));
  }

  /** Undefined when the configuration names no sink. @throws StartError when one of them cannot be opened */
  static async open(options: AuditDevicesOptions): Promise<AuditDevices | undefined> {
    if (options.devices.length === 0) return undefined;
    const devices = new AuditDevices(options);
    for (const device of devices.#devices) {
      await device.open().catch((error: NodeJS.ErrnoException) => {
        throw new StartError(`audit: the sink ${device.name} cannot be opened: ${error.code ?? error.message}`);
      });
    }
    return devices;
  }

  get names(): readonly string[] {
    return this.#devices.map(({ name }) => name);
  }

  /**
   * Resolves when one sink has written its entry.
   * @param entryFor - the text for the sink of this name
   * @throws AggregateError when none did
   */
  async write(type: EntryType, entryFor: (device: string) => string): Promise<void> {
    const begunMs = performance.now();
    await Promise.any(
      this.#devices.map(async (device) => {
        try {
          await device.write(this.#made(() => entryFor(device.name)));
          this.#observer.logged(type, device.name, performance.now() - begunMs);
        } catch (error) {
          this.#observer.failed(type, device.name);
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
    await Promise.all(this.#devices.map((device) => device.reopen()));
  }

  async close(): Promise<void> {
    await Promise.all(this.#devices.map((device) => device.close()));
  }
}

function deviceOf(config: AuditDeviceConfig, log: Logger): AuditDevice {
  const { name } = config;
  return new AuditDevice({
    name,
    open: config.type === 'stdout' ? openStdout : () => openAuditFile(config),
    sync: config.type === 'file' && config.sync,
    onFailure: (error) =>
      log.error({ device: name, reason: reasonOf(error) }, 'audit: this sink takes no entries; it is tried again'),
    onRecovery: () => log.info({ device: name }, 'audit: this sink takes entries again'),
  });
}

/** Errors of the file system by their code: messages would name paths, and nothing else is worth more. */
const reasonOf = (error: Error): string => (error as NodeJS.ErrnoException).code ?? error.message;
