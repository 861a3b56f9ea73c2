import type { RecordClock } from '@transitd/process';
import type { Store } from '@transitd/storage-fsm';
import type { TokenRegistry } from '../tokens/token-registry.ts';
import type { Tokens } from '../tokens/tokens.ts';
import type { DisputedDates } from '../values/disputed-dates.ts';
import type { OutsideWaits } from './outside-waits.ts';

/** Where the keys that verify signed tokens are fetched from. */
export type FetchedKeys =
  /** A file, by its name in the configuration of the node. */
  | { readonly kind: 'file'; readonly name: string }
  /** A key set. @property ca - CA certificates in PEM, to verify its server; empty for the default ones */
  | { readonly kind: 'url'; readonly url: string; readonly ca: string }
  /** The key set that the discovery document of an issuer names. @property url - of the issuer */
  | { readonly kind: 'discovery'; readonly url: string; readonly ca: string }
  /** The API server of the Kubernetes cluster in which the node runs. */
  | { readonly kind: 'kubernetes' };

/** Fetches key sets from outside the store, and reports which of them cannot be had. */
export interface KeySources {
  /**
   * Returns a key set as text, limited in time and size; undefined when the configuration of the node has no file of that name.
   * @throws Error that says why there is none, with a `code` if the system gave one
   */
  fetch(source: FetchedKeys): Promise<string | undefined>;
  /** Reports that a source gave no keys, or none that can be used. */
  failed(source: FetchedKeys, error: unknown): void;
}

/** A request to the API server of a Kubernetes cluster. */
interface KubernetesRequest {
  /** CA certificates in PEM for the server; empty for the default ones. */
  readonly ca: string;
  /** Sent as the bearer token. */
  readonly token: string;
  /** Sent as JSON. */
  readonly json: object;
}

export interface KubernetesAnswer {
  readonly status: number;
  /** Undefined if the body is not JSON. */
  readonly json: unknown;
}

/** API servers of Kubernetes clusters, and the service account of the pod in which this node runs. */
export interface Kubernetes {
  /**
   * Resolves with the answer, whatever its status is. Follows no redirect, and limits the time and the size of the answer.
   * @throws Error if no answer arrived
   */
  post(url: string, request: KubernetesRequest): Promise<KubernetesAnswer>;
  /**
   * Returns the present content of a file of the service account; undefined if this node runs in no pod that has one.
   * @throws errors of the file system
   */
  podFile(name: 'ca.crt' | 'token'): string | undefined;
}

/** The services that an auth method works with. */
export interface MethodServices {
  /** The store of the records, in plaintext. */
  readonly store: Store;
  readonly tokens: Tokens;
  readonly registry: TokenRegistry;
  readonly sources: KeySources;
  readonly kubernetes: Kubernetes;
  readonly waits: OutsideWaits;
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
