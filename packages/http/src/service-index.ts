import type { ServiceIndex } from '@transitd/storage-fsm';
import { RequestError } from './reply/request-error.ts';

/**
 * Header of a response with the log index of the state that it was read from. A request that sends the header back does not read an older
 * state. Callers treat the value as opaque.
 */
export const indexHeader = 'X-Service-Index';

/** Returns the header under our name and under the peers' name, which existing clients read. */
export function indexHeaders(index: ServiceIndex): Readonly<Record<string, string>> {
  const value = indexValue(index);
  return { [indexHeader]: value, 'X-Vault-Index': value };
}

/**
 * Returns the header value in the peers' form: base64 of `v1:<history>:<index>:<index of another cluster>:<HMAC>`. Existing clients compare
 * the indexes of one history and keep the newest; they replace an index of another history. There is no other cluster here, and the value
 * needs no protection by an HMAC.
 */
export const indexValue = ({ history, index }: ServiceIndex): string =>
  Buffer.from(`v1:${history}:${index}:0:`).toString('base64');

/** Returns the index in a header value; undefined for a value that no cluster sends. */
export function indexIn(header: string | string[] | undefined): ServiceIndex | undefined {
  const [, history, digits] =
    /^v1:([^:]{1,256}):(\d{1,15}):0:$/.exec(Buffer.from(String(header ?? ''), 'base64').toString('latin1')) ?? [];
  if (history === undefined) return undefined;
  const found = { history, index: Number(digits) };
  return indexValue(found) === header ? found : undefined; // base64 decoding accepts more than encoding produces
}

/** Returns the header in which a request names the index that it requires; undefined or empty if it names none. */
const wantedHeader = (headers: NodeJS.Dict<string | string[]>): string | string[] | undefined =>
  headers['x-service-index'] || headers['x-vault-index'];

/** Returns whether the request requires an index. */
export const wantsIndex = (headers: NodeJS.Dict<string | string[]>): boolean => Boolean(wantedHeader(headers));

/** Returns the index that the request requires. @throws RequestError for a value that no cluster sends */
export function indexWanted(headers: NodeJS.Dict<string | string[]>): ServiceIndex | undefined {
  const header = wantedHeader(headers);
  if (header === undefined || header === '') return undefined;
  const index = indexIn(header);
  if (index === undefined) throw indexOfOtherCluster();
  return index;
}

export const indexOfOtherCluster = (): RequestError =>
  new RequestError('invalid_request', `${indexHeader} belongs to another cluster`);
