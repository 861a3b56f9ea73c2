import type { IncomingMessage } from 'node:http';
import { RequestError, type RequestPath, type Verb } from '@transitd/http';

const verbs: Readonly<Record<string, Verb>> = { GET: 'GET', POST: 'POST', PUT: 'POST', DELETE: 'DELETE', LIST: 'LIST' };

/** Headers of which Node keeps only the first, while a proxy may have read another. */
const singleHeaders = [
  ['authorization', 'Authorization'],
  ['content-type', 'Content-Type'],
] as const;

/** Refuses heads that a proxy could read differently (RFC 9112 §3, §3.2; RFC 9110 §5.3). @throws RequestError `invalid_request` */
export function checkHead({ rawHeaders, httpVersion }: IncomingMessage): void {
  if (httpVersion !== '1.1' && httpVersion !== '1.0')
    throw new RequestError('invalid_request', 'unsupported HTTP version: use HTTP/1.1');
  const hosts = countOf('host', rawHeaders);
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1'))
    throw new RequestError('invalid_request', 'the request must have exactly one Host header');
  for (const [name, written] of singleHeaders)
    if (countOf(name, rawHeaders) > 1)
      throw new RequestError('invalid_request', `the request must not have more than one ${written} header`);
}

function countOf(name: string, rawHeaders: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const each = rawHeaders[i];
    if (each?.length === name.length && each.toLowerCase() === name) count += 1;
  }
  return count;
}
/**
 * Returns the verb, or undefined if no operation has it.
 * @throws RequestError for a `list` that is not a boolean, and for a PATCH whose content type is not a merge patch
 */
export function verbOf({ method = '', headers }: IncomingMessage, { query }: RequestPath): Verb | undefined {
  const verb = verbs[method];
  if (method === 'PATCH' && !/^\s*application\/merge-patch\+json\s*(?:;|$)/i.test(headers['content-type'] ?? ''))
    throw new RequestError('unsupported_media_type', 'PATCH requires the content type application/merge-patch+json');
  if (verb !== 'GET' || query.size === 0) return verb;
  const list = query.get('list');
  if (list === null || list === '' || /^(0|f|F|FALSE|false|False)$/.test(list)) return verb;
  if (/^(1|t|T|TRUE|true|True)$/.test(list)) return 'LIST';
  throw new RequestError('invalid_request', '');
}
