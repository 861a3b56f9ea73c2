import type { RecordClock } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import type { TokenRegistry } from '../tokens/token-registry.ts';
import type { Tokens } from '../tokens/tokens.ts';
import type { DisputedDates } from '../values/disputed-dates.ts';

/**
 * Fetches key sets from outside the store. Both functions return a key set as a string, and limit the time of the fetch and the size
 * of the key set.
 */
export interface KeySources {
  /** Returns undefined when the configuration has no file of that name. */
  file(name: string): Promise<string | undefined>;
  url(url: string, ca: string): Promise<string>;
}

/** The services that an auth method works with. */
export interface MethodServices {
  /** The store of the records, in plaintext. */
  readonly store: Store;
  readonly tokens: Tokens;
  readonly registry: TokenRegistry;
  readonly sources: KeySources;
  readonly clock: RecordClock;
  readonly disputedDates: DisputedDates;
}

/** A record of an enabled auth method, at `<kind>/<name>` or `<kind>/<name>/…` below the records of the method. */
export interface LoginRecord {
  readonly mountId: string;
  readonly kind: string;
  readonly name: string;
  readonly value: Uint8Array;
}

/** The records and logins of all auth methods of one type. It exists while the barrier is unsealed. */
export interface OpenedMethod {
  /**
   * Returns whether a record can no longer be used, so that the sweep deletes it. Absent if all stay until their method is disabled.
   * @throws AccessError to keep a record that is unreadable, because a newer version wrote it; StoreError
   */
  isSpent?(record: LoginRecord, now: number): Promise<boolean>;
  /** Drops what it holds in memory, and stops watching the store. */
  close(): void;
}

/** A type of auth methods, such as `userpass`. */
export interface MethodType<Opened extends OpenedMethod = OpenedMethod> {
  readonly type: string;
  /** What it has at the paths of requests below a method, such as `users/:name`. */
  readonly paths: Readonly<Record<string, object>>;
  open(services: MethodServices): Opened;
}
