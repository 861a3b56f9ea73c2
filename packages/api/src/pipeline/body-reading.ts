import type { IncomingMessage, ServerResponse } from 'node:http';
import { announcesBody, type Body, type BodyCaller, parseBody, queryBody, RequestError, readBody } from '@transitd/http';
import type { GuardedOperation } from '../operation/operation.ts';
import type { PipelineOptions, RoutedRequest } from './request.ts';

/** What is read of the body of a caller without a valid token, in bytes: enough to tell malformed JSON. */
const anonymousBodyBytesMax = 64 * 1024;
const deadlineMs = 30_000;

/** Reads the bodies of requests, no further than each may be read. */
export class RequestBodies {
  readonly #options: Pick<PipelineOptions, 'bodyBytesMax' | 'limits'>;
  readonly #kept = new WeakMap<IncomingMessage, Buffer>();

  constructor(options: Pick<PipelineOptions, 'bodyBytesMax' | 'limits'>) {
    this.#options = options;
  }

  /** Of a caller with a token; undefined where there is none, or it is to be taken as it comes. */
  async of(
    operation: GuardedOperation,
    req: IncomingMessage,
    res: ServerResponse,
    caller: BodyCaller,
  ): Promise<Buffer | undefined> {
    if (operation.streamsBody || !announcesBody(req)) return undefined;
    if (operation.endsLeadership) return this.kept(req, res);
    const { bodyBytesMax, limits } = this.#options;
    return readBody(req, res, { bytesMax: bodyBytesMax, deadlineMs, room: limits?.bodies.reservation(res, caller) });
  }

  /** Of anybody, once: asked again for the same request, it gives the same bytes. */
  async ofStranger(req: IncomingMessage, res: ServerResponse): Promise<Buffer | undefined> {
    if (!announcesBody(req)) return undefined;
    const bytes = this.#kept.get(req) ?? (await readBody(req, res, { bytesMax: anonymousBodyBytesMax, deadlineMs }));
    this.#kept.set(req, bytes);
    return bytes;
  }

  /** Of a request that may be asked more than once for it. */
  async kept(req: IncomingMessage, res: ServerResponse): Promise<Buffer> {
    return (await this.ofStranger(req, res)) ?? Buffer.alloc(0);
  }

  /** Of a request that will be forwarded: a slow caller holds no connection to the active node. Undefined for none, and for one that may be longer than 64 KiB. */
  async ifSmall(req: IncomingMessage, res: ServerResponse): Promise<Buffer | undefined> {
    const length = req.headers['content-length'];
    return length === undefined || Number(length) > anonymousBodyBytesMax ? undefined : this.ofStranger(req, res);
  }
}

/** The members that the operation is given: of the body, or of the query. @throws RequestError */
export function bodyOf(
  bytes: Buffer | undefined,
  { req, verb, path }: Pick<RoutedRequest, 'req' | 'verb' | 'path'>,
): Body | Promise<Body> {
  if (verb === 'GET' || verb === 'LIST') return queryBody(path.query);
  return bytes === undefined ? emptyBody : parseBody(bytes, req.headers['content-type']);
}

const emptyBody: Body = Object.freeze(Object.create(null));

/** A body that is too long for a stranger is as good as none. */
export function ignoreTooLarge(error: unknown): undefined {
  if (!(error instanceof RequestError) || error.code !== 'body_too_large') throw error;
}
