import type { AuditDevices, Exchange } from '@transitd/audit';
import type { RequestPath, Verb } from '@transitd/http';
import type { Node } from '@transitd/node';
import type { Logger } from '@transitd/process';
import type { RequestMetrics } from '../operation/metrics-port.ts';
import type { Operation } from '../operation/operation.ts';
import type { Limits } from './limits.ts';

export interface ServeOptions {
  readonly node: Node;
  readonly log: Logger;
  readonly metrics: RequestMetrics;
  readonly bodyBytesMax: number;
  /** What the node takes on at a time, by this way and all others together; absent for anything. */
  readonly limits?: Limits | undefined;
  /** Where requests and answers are recorded; absent for nowhere. */
  readonly audit?: AuditDevices | undefined;
  /** Whose `X-Forwarded-For` is believed: blocks of addresses. */
  readonly trustedProxies?: readonly string[];
  /** These requests come from another node, which took them from their callers: they are handed to nobody else. */
  readonly forwarded?: true;
}

/** A request whose operation is known. */
export interface Routed {
  readonly path: RequestPath;
  /** `path.path` with each name in the form in which it counts: what quotas, audit and the operation see. */
  readonly canonical: string;
  /** Segment of it, from 0, that is a name which counts in another form than the one written; absent where none is. */
  readonly nameAt?: number | undefined;
  /** As it came. */
  readonly url: string;
  readonly verb: Verb;
  readonly operation: Operation;
  /** In their canonical form too. */
  readonly params: Readonly<Record<string, string>>;
}

/** A request with its kind of operation, and where it comes from. */
export type Asked<Kind extends Operation> = Routed & {
  readonly operation: Kind;
  readonly address: string;
  /** Where it is recorded; undefined where it is not. */
  readonly exchange: Exchange | undefined;
};
