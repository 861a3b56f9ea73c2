import { type Body, bodyStream } from '@transitd/http';
import type { Call } from '../operation/operation.ts';
import { bodyOf } from './body-reading.ts';
import type { CompleteRequest } from './request.ts';

/** Returns the call for the operation, with the body as JSON or as a stream. @throws RequestError */
export function callOf(request: CompleteRequest): Call | Promise<Call> {
  const body = bodyOf(request.bytes, request);
  return body instanceof Promise ? body.then((members) => callWith(request, members)) : callWith(request, body);
}

function callWith(request: CompleteRequest, body: Body): Call {
  const { req, res, verb, path, canonical, params, operation, address, wrapTtlS } = request;
  const stream = operation.streamsBody ? bodyStream(req, res) : undefined;
  return {
    verb,
    path: canonical,
    written: path.path,
    params,
    query: path.query,
    body,
    address,
    ...(wrapTtlS > 0 && { wrapTtlS }),
    ...(stream && { bodyStream: stream }),
  };
}
