import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '@transitd/configuration';
import { type Logger, reasonOf, StartError } from '@transitd/process';
import { AuditDevice, type Failure } from './audit-device.ts';
import { type FileChange, openAuditFile } from './audit-file.ts';
import { openStdout } from './audit-stdout.ts';

/** Pause between checks of the files. The lines of this time are held in memory if a file was removed. */
const checkMs = 1000;

export type AuditDeviceConfig = Config['audit'][number];
export type EntryType = 'request' | 'response';

/** Receives the outcome of each write, for metrics. Device names come from the configuration. */
export interface AuditObserver {
  /** A device wrote an entry. @param ms - how long that took */
  logged(type: EntryType, device: string, ms: number): void;
  failed(type: EntryType, device: string): void;
  /** Somebody has renamed, removed or truncated the file of a device while it was in use. */
  changed(change: FileChange, device: string): void;
}

export interface AuditDevicesOptions {
  readonly devices: readonly AuditDeviceConfig[];
  readonly log: Logger;
  readonly observer: AuditObserver;
}

/** The audit devices of this node. An entry counts as written as soon as one device has written it. */
export class AuditDevices {
  readonly configs: readonly AuditDeviceConfig[];
  readonly #devices: readonly AuditDevice[];
  readonly #observer: AuditObserver;
  readonly #log: Logger;
  readonly #closing = new AbortController();
  /** A failure to build an entry was logged, and no entry has been built since. */
  #buildFailureLogged = false;

  private constructor({ devices, log, observer }: AuditDevicesOptions) {
    this.configs = devices;
    this.#observer = observer;
    this.#log = log;
    this.#devices = devices.map((config) => deviceOf(config, log, observer));
  }

  /** Opens the devices; undefined when the configuration has none. @throws StartError when a device cannot be opened */
  static async open(options: AuditDevicesOptions): Promise<AuditDevices | undefined> {
    if (options.devices.length === 0) return undefined;
    const devices = new AuditDevices(options);
    for (const device of devices.#devices) {
      await device.open().catch((error: NodeJS.ErrnoException) => {
        throw new StartError(`audit: device ${device.name} cannot be opened: ${error.code ?? error.message}`);
      });
    }
    for (const device of devices.#devices) void devices.#watch(device);
    return devices;
  }

  get names(): readonly string[] {
    return this.#devices.map(({ name }) => name);
  }

  /**
   * Writes an entry to every device; resolves when the first of them has written it.
   * @param entryFor - returns the entry for the device with this name
   * @throws AggregateError when every device failed
   */
  async write(type: EntryType, entryFor: (device: string) => string): Promise<void> {
    const begunMs = performance.now();
    await Promise.any(
      this.#devices.map(async (device) => {
        try {
          await device.write(this.#build(() => entryFor(device.name)));
          this.#observer.logged(type, device.name, performance.now() - begunMs);
        } catch (error) {
          this.#observer.failed(type, device.name);
          throw error;
        }
      }),
    );
  }

  /**
   * Logs that an entry could not be built, for example because the cluster has no audit key yet. Logs it again only after an entry could be
   * built.
   */
  buildFailed(error: unknown): void {
    if (this.#buildFailureLogged) return;
    this.#buildFailureLogged = true;
    this.#log.error(
      { reason: reasonOf(error) },
      'audit: an entry could not be built, so its request got 503; each request tries again',
    );
  }

  #build(entry: () => string): string {
    try {
      const text = entry();
      this.#buildFailureLogged = false;
      return text;
    } catch (error) {
      this.buildFailed(error);
      throw error;
    }
  }

  /** Checks again and again whether the path of a device still leads to its file. */
  async #watch(device: AuditDevice): Promise<void> {
    const { signal } = this.#closing;
    for (;;) {
      await pause(checkMs, undefined, { ref: false, signal }).catch(() => undefined); // closing ends the pause
      if (signal.aborted) return;
      await device.check();
    }
  }

  /** Closes every file, which log rotation may have renamed, and opens the configured path again. */
  async reopen(): Promise<void> {
    await Promise.all(this.#devices.map((device) => device.reopen()));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#devices.map((device) => device.close()));
  }
}

/** The part of the devices that records requests. */
export type AuditWriter = Pick<AuditDevices, 'names' | 'write' | 'buildFailed'>;

/** Of a node whose configuration names no audit device. */
export const noAudit: AuditWriter = { names: [], write: async () => undefined, buildFailed: () => undefined };

function deviceOf(config: AuditDeviceConfig, log: Logger, observer: AuditObserver): AuditDevice {
  const { name } = config;
  return new AuditDevice({
    name,
    open: config.type === 'stdout' ? openStdout : () => openAuditFile(config),
    sync: config.type === 'file' && config.sync,
    onFailure: (error, failure) => log.error({ device: name, reason: codeOf(error) }, failureTexts[failure]),
    onRecovery: () => log.info({ device: name }, 'audit: this device works again'),
    onChange: (change) => {
      observer.changed(change, name);
      if (change === 'renamed') log.warn({ device: name }, changeTexts[change]);
      else log.error({ device: name }, changeTexts[change]);
    },
  });
}

const failureTexts: Readonly<Record<Failure, string>> = {
  writes:
    'audit: this device cannot write entries; each request tries it again. Without a working device every recorded request gets 503',
  path: 'audit: the configured path cannot be checked or opened; entries continue in the file that is open, and the path is tried again',
};

const changeTexts: Readonly<Record<FileChange, string>> = {
  renamed: 'audit: the file was renamed, and SIGHUP has not followed; entries continue in a new file at the configured path',
  removed:
    'audit: the file was removed while in use, and its entries are gone; entries continue in a new file at the configured path',
  truncated: 'audit: the file was truncated while in use, and the entries that it had are gone; do not truncate it, rename it',
};

/** Returns the code of a file system error; its message would only add the path. */
const codeOf = (error: Error): string => (error as NodeJS.ErrnoException).code ?? error.message;
