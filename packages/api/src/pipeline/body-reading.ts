import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  announcesBody,
  type Body,
  type BodyCaller,
  type FieldSchema,
  mayNeedMemory,
  parseBody,
  queryBody,
  RequestError,
  readBody,
} from '@transitd/http';
import type { Call, GuardedOperation, Operation } from '../operation/operation.ts';
import type { PipelineOptions, RoutedRequest } from './request.ts';

/** Largest body read without a valid token, in bytes: enough to report malformed JSON. */
const anonymousBodyBytesMax = 64 * 1024;
const deadlineMs = 30_000;

/** Reads request bodies within their limits. */
export class RequestBodies {
  readonly #options: Pick<PipelineOptions, 'bodyBytesMax' | 'limits'>;
  readonly #kept = new WeakMap<IncomingMessage, Buffer>();

  constructor(options: Pick<PipelineOptions, 'bodyBytesMax' | 'limits'>) {
    this.#options = options;
  }

  /** Returns the body of an authenticated request; undefined if the request has no body, or if the operation reads it as a stream. */
  of(
    operation: GuardedOperation,
    req: IncomingMessage,
    res: ServerResponse,
    caller: () => BodyCaller,
  ): Buffer | undefined | Promise<Buffer> {
    if (operation.streamsBody || !announcesBody(req)) return undefined;
    const kept = this.#kept.get(req);
    if (kept !== undefined) return kept;
    if (operation.endsLeadership) return this.#readAndKeep(req, res);
    const { bodyBytesMax, limits } = this.#options;
    const bytesMax = Math.min(bodyBytesMax, operation.bodyBytesMax ?? bodyBytesMax);
    const room = mayNeedMemory(req) ? limits?.bodies.reservation(res, caller()) : undefined;
    return readBody(req, res, { bytesMax, deadlineMs, room });
  }

  /** Returns the body of an unauthenticated request; a second call for the same request returns the same bytes. */
  async ofUnauthenticated(req: IncomingMessage, res: ServerResponse): Promise<Buffer | undefined> {
    if (!announcesBody(req)) return undefined;
    const bytes = this.#kept.get(req) ?? (await readBody(req, res, { bytesMax: anonymousBodyBytesMax, deadlineMs }));
    this.#kept.set(req, bytes);
    return bytes;
  }

  /** Remembers a body that was read, because the request is decided again. */
  keep(req: IncomingMessage, bytes: Buffer | undefined): void {
    if (bytes !== undefined) this.#kept.set(req, bytes);
  }

  /**
   * Returns the body of a request that will be forwarded. It is read before forwarding, so that a slow caller does not occupy a connection
   * to the active node. Returns undefined if the request has no body, or if the body may be longer than 64 KiB. The body of an operation
   * that may end leadership is always read, since it may have to be forwarded again.
   */
  async toForward({ endsLeadership }: GuardedOperation, req: IncomingMessage, res: ServerResponse): Promise<Buffer | undefined> {
    if (endsLeadership) return this.#readAndKeep(req, res);
    const length = req.headers['content-length'];
    return length === undefined || Number(length) > anonymousBodyBytesMax ? undefined : this.ofUnauthenticated(req, res);
  }

  /** Returns a body that may be needed more than once; empty if the request has no body. */
  async #readAndKeep(req: IncomingMessage, res: ServerResponse): Promise<Buffer> {
    return (await this.ofUnauthenticated(req, res)) ?? Buffer.alloc(0);
  }
}

/**
 * Returns the members of the body, or of the query for GET and LIST. Those of a DELETE with conditions include the members of its query.
 * @throws RequestError
 */
export function bodyOf(
  bytes: Buffer | undefined,
  { req, verb, path, operation }: Pick<RoutedRequest, 'req' | 'verb' | 'path' | 'operation'>,
): Body | Promise<Body> {
  if (verb === 'GET' || verb === 'LIST') return queryBody(path.query);
  const body = bytes === undefined ? emptyBody : parseBody(bytes, req.headers['content-type']);
  if (verb !== 'DELETE' || path.query.size === 0 || !isConditional(operation)) return body;
  const withQuery = (members: Body): Body => Object.assign(Object.create(null), members, queryBody(path.query));
  return body instanceof Promise ? body.then(withQuery) : withQuery(body);
}

const isConditional = ({ takes = {} }: Operation): boolean => Object.values(takes).some(({ condition }) => condition);

/** Returns the fields of an operation, for all auth method types. */
const fieldsOf = ({ takes = {}, byType }: Operation): FieldSchema =>
  byType === undefined ? takes : Object.assign({}, takes, ...Object.values(byType).map((each) => each.takes));

/**
 * Refuses parameters in the wrong place. A condition that is misspelled or misplaced must not let the change pass, so beside conditions no
 * other member is taken in the query of a DELETE, nor in its body. Any other query must have no member that belongs in the body.
 *
 * Call it only for callers with the rights, because the refusal shows that the path exists.
 * @throws RequestError
 */
export function checkPlaces(operation: Operation, { verb, query, body }: Pick<Call, 'verb' | 'query' | 'body'>): void {
  if (verb === 'GET' || verb === 'LIST' || (verb === 'POST' && query.size === 0)) return;
  const hasConditions = isConditional(operation);
  const takes = fieldsOf(operation);
  const isTaken = (name: string): boolean => Object.hasOwn(takes, name);
  for (const name of Object.keys(queryBody(query))) {
    const isAllowed = hasConditions ? verb === 'DELETE' && isTaken(name) && takes[name]?.condition : !isTaken(name);
    if (!isAllowed) throw refusedParameter('query');
  }
  if (hasConditions && verb === 'DELETE' && !Object.keys(body).every(isTaken)) throw refusedParameter('body');
}

const refusedParameter = (place: string): RequestError =>
  new RequestError(
    'invalid_request',
    `the ${place} has a parameter that this operation does not take there; nothing was changed`,
  );

const emptyBody: Body = Object.freeze(Object.create(null));

/** Treats a body that exceeds the limit for requests without a token as absent; throws any other error. */
export function ignoreTooLarge(error: unknown): undefined {
  if (!(error instanceof RequestError) || error.code !== 'body_too_large') throw error;
}
