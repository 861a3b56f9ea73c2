import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Principal } from '@transitd/access';
import type { AuditDevices, Exchange } from '@transitd/audit';
import type { RequestPath, Verb } from '@transitd/http';
import type { Node, Services } from '@transitd/node';
import type { Logger } from '@transitd/process';
import type { RequestMetrics } from '../operation/metrics-port.ts';
import type { GuardedOperation, Operation, Params, Where } from '../operation/operation.ts';
import type { Limits } from './limits.ts';
import type { ReadSource } from './read-source.ts';

export interface PipelineOptions {
  readonly node: Node;
  readonly log: Logger;
  readonly metrics: RequestMetrics;
  readonly bodyBytesMax: number;
  /** In-flight limits, shared by all listeners of the node; absent for none. */
  readonly limits?: Limits | undefined;
  /** Where requests and responses are recorded; absent for nowhere. */
  readonly audit?: AuditDevices | undefined;
  /** Blocks of addresses whose `X-Forwarded-For` is believed. */
  readonly trustedProxies?: readonly string[];
  /** These requests were forwarded by another node: they are never forwarded again. */
  readonly forwarded?: true;
}

/** A request whose route is known. */
export interface RouteMatch {
  readonly path: RequestPath;
  /** `path.path` with each name in its canonical form: what quotas, audit and the operation see. */
  readonly canonical: string;
  /** Index of the segment that is a name without case; absent where the route has none. */
  readonly nameAt?: number | undefined;
  /** As the caller wrote it. */
  readonly url: string;
  readonly verb: Verb;
  readonly operation: Operation;
  /** In their canonical form too. */
  readonly params: Params;
}

/** A request that enters the pipeline: its route, its caller's address and its pair of audit entries. */
export interface RoutedRequest<Kind extends Operation = Operation> extends RouteMatch {
  readonly operation: Kind;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly address: string;
  /** Undefined where the request is not audited. */
  readonly exchange: Exchange | undefined;
}

/** A request with a good token, which this node may answer. */
export interface AuthenticatedRequest extends RoutedRequest<GuardedOperation> {
  readonly services: Services;
  readonly token: string;
  readonly principal: Principal;
  /** Epoch of the tokens and policies by which the principal was found. */
  readonly epoch: number;
  /** The state that it is answered from. */
  readonly source: ReadSource;
  readonly where: Where;
  readonly wrapTtlS: number;
}

/** The same with its body, unless the operation reads that as a stream. */
export interface CompleteRequest extends AuthenticatedRequest {
  readonly bytes: Buffer | undefined;
}
