import type { SecureContextOptions } from 'node:tls';
import type { EntryType } from '@transitd/audit';
import type { Config, ListenerConfig } from '@transitd/configuration';
import type { GatewaySession, KeyVersionUse, NodeMemory } from '@transitd/node';
import type { NodeLimits } from './node-limits.ts';
import type { ThreadLoad } from './thread-load.ts';

/** How a gateway reaches the main thread: a Unix domain socket, and a secret that proves that the caller is a gateway of this process. */
export interface MainThreadAddress {
  readonly socketPath: string;
  readonly secret: string;
}

/** One listener as each thread creates it. */
export interface GatewayListener {
  readonly config: ListenerConfig;
  readonly tls: SecureContextOptions | undefined;
  /** The address on which the main thread listens, with its real port. */
  readonly bound: ListenerConfig['address'];
}

/** Given to a gateway thread when it starts. */
export interface GatewayData {
  readonly config: Config;
  readonly memory: NodeMemory;
  readonly row: number;
  readonly listeners: readonly GatewayListener[];
  readonly limits: NodeLimits;
  readonly main: MainThreadAddress;
}

/** What the main thread asks of a gateway. */
export type Question =
  | { readonly kind: 'contexts'; readonly contexts: readonly (SecureContextOptions | undefined)[] }
  | { readonly kind: 'report' }
  | { readonly kind: 'drain' };

/** Number of a question, which its answer repeats. */
interface Asked {
  readonly asked: number;
}

/** A message of the main thread to a gateway. */
export type ToGateway =
  | { readonly kind: 'session'; readonly session: GatewaySession }
  | { readonly kind: 'seal' }
  | (Question & Asked)
  | { readonly kind: 'audited'; readonly id: number; readonly failure?: string };

/** Answers of a gateway since its last report, in parallel arrays. */
export interface AnswersReport {
  readonly operations: readonly string[];
  readonly ms: readonly number[];
  readonly statuses: readonly number[];
  /** Number of requests that were passed to the main thread. */
  readonly passed: number;
}

/** The uses of keys by the answers of a gateway since its last report. */
export interface UsesReport {
  readonly uses: readonly KeyVersionUse[];
  /** Some uses could not be counted. */
  readonly hasLost: boolean;
}

/** Sent twice a second, after many answers, and when it is asked for. */
interface Report {
  readonly answers: AnswersReport;
  readonly counted: UsesReport;
  readonly load: ThreadLoad;
}

/** A message of a gateway to the main thread. */
export type FromGateway =
  | { readonly kind: 'listening' }
  | ({ readonly kind: 'contexts' } & Asked)
  | { readonly kind: 'lost'; readonly reason: string }
  | { readonly kind: 'warning'; readonly warning: string; readonly message: string }
  | ({ readonly kind: 'report' } & Report & Partial<Asked>)
  | ({ readonly kind: 'drained' } & Asked)
  | { readonly kind: 'audit'; readonly id: number; readonly type: EntryType; readonly entries: Readonly<Record<string, string>> }
  | { readonly kind: 'unaudited'; readonly reason: string };
