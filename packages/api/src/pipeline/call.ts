import { bodyStream } from '@transitd/http';
import type { Call } from '../operation/operation.ts';
import { bodyOf } from './body-reading.ts';
import type { CompleteRequest } from './request.ts';

/** Returns the call for the operation, with the body as JSON or as a stream. @throws RequestError */
export async function callOf(request: CompleteRequest): Promise<Call> {
  const { req, res, verb, path, canonical, params, operation, address, wrapTtlS, bytes } = request;
  const body = bodyOf(bytes, request);
  const stream = operation.streamsBody ? bodyStream(req, res) : undefined;
  return {
    verb,
    path: canonical,
    written: path.path,
    params,
    query: path.query,
    body: body instanceof Promise ? await body : body,
    address,
    ...(wrapTtlS > 0 && { wrapTtlS }),
    ...(stream && { bodyStream: stream }),
  };
}
