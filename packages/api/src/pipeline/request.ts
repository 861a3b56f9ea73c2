import type { IncomingMessage, ServerResponse } from 'node:http';
import type { NamePlace, Principal } from '@transitd/access';
import type { AuditDevices, Exchange } from '@transitd/audit';
import type { RequestPath, Verb } from '@transitd/http';
import type { Node, Services } from '@transitd/node';
import type { ClientCertificate, Logger, Tracer } from '@transitd/process';
import type { RequestMetrics } from '../operation/metrics-port.ts';
import type { GuardedOperation, Operation, Params, Where } from '../operation/operation.ts';
import type { Limits } from './limits.ts';
import type { ReadSource } from './read-source.ts';

export interface PipelineOptions {
  readonly node: Node;
  readonly log: Logger;
  readonly metrics: RequestMetrics;
  /** Absent if requests are not traced. */
  readonly tracer?: Tracer | undefined;
  readonly bodyBytesMax: number;
  /** In-flight limits, shared by all listeners of the node; absent for no limits. */
  readonly limits?: Limits | undefined;
  /** Absent if requests are not audited. */
  readonly audit?: AuditDevices | undefined;
  /** CIDR blocks of the proxies whose `X-Forwarded-For` header is trusted. */
  readonly trustedProxies?: readonly string[];
  /** Requests on this listener were forwarded by another node and are never forwarded again. */
  readonly forwarded?: true;
}

/** A routed request. */
export interface RouteMatch {
  readonly path: RequestPath;
  /** `path.path` with each name in its canonical form, for quotas, audit and the operation. */
  readonly canonical: string;
  /** Place of the case-insensitive name in the path; absent if the route has none. */
  readonly namePlace?: NamePlace | undefined;
  /** The target in the request line. */
  readonly url: string;
  readonly verb: Verb;
  readonly operation: Operation;
  /** Path parameters in their canonical form. */
  readonly params: Params;
}

/** A request that enters the pipeline: its route, its caller's address and its pair of audit entries. */
export interface RoutedRequest<Kind extends Operation = Operation> extends RouteMatch {
  readonly operation: Kind;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly address: string;
  /** The verified certificate of the client; undefined for none. */
  readonly certificate: ClientCertificate | undefined;
  /** Undefined if the request is not audited. */
  readonly exchange: Exchange | undefined;
}

/** A request with a valid token that this node may answer. */
export interface AuthenticatedRequest extends RoutedRequest<GuardedOperation> {
  readonly services: Services;
  readonly token: string;
  readonly principal: Principal;
  /** Epoch of the tokens and policies at authentication; it has changed if any of them has changed since. */
  readonly epoch: number;
  /** The state that the response is read from. */
  readonly source: ReadSource;
  readonly where: Where;
  readonly wrapTtlS: number;
}

/** An authenticated request. Its body has been read, unless the operation reads it as a stream. */
export interface CompleteRequest extends AuthenticatedRequest {
  readonly bytes: Buffer | undefined;
}
