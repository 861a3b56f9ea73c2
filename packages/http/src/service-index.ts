import { RequestError } from './reply/request-error.ts';

/**
 * Header of a response with the log index of the state that it was read from. A request that sends the header back does not read an older
 * state. Callers treat the value as opaque.
 */
export const indexHeader = 'X-Service-Index';

/** Returns the header under our name and under the peers' name, which existing clients read. */
export const indexHeaders = (value: string): Readonly<Record<string, string>> => ({
  [indexHeader]: value,
  'X-Vault-Index': value,
});

/**
 * Returns the header value in the peers' form: base64 of `v1:<cluster>:<index>:<index of another cluster>:<HMAC>`. Existing clients compare
 * such values and keep the newest. There is no other cluster here, and the value needs no protection by an HMAC.
 */
export const indexValue = (clusterId: string, index: number): string =>
  Buffer.from(`v1:${clusterId}:${index}:0:`).toString('base64');

/** Returns the index in a header value of this cluster; undefined for any other value. */
export function indexIn(header: string | string[] | undefined, clusterId: string): number | undefined {
  const [, digits] = /:(\d{1,15}):0:$/.exec(Buffer.from(String(header ?? ''), 'base64').toString('latin1')) ?? [];
  if (digits === undefined) return undefined;
  const index = Number(digits);
  return indexValue(clusterId, index) === header ? index : undefined; // base64 decoding accepts more than encoding produces
}

/** Returns the header in which a request names the index that it requires; undefined or empty if it names none. */
const wantedHeader = (headers: NodeJS.Dict<string | string[]>): string | string[] | undefined =>
  headers['x-service-index'] || headers['x-vault-index'];

/** Returns whether the request requires an index. */
export const wantsIndex = (headers: NodeJS.Dict<string | string[]>): boolean => Boolean(wantedHeader(headers));

/** Returns the index that the request requires. @throws RequestError if the header is not from this cluster */
export function indexWanted(headers: NodeJS.Dict<string | string[]>, clusterId: string): number | undefined {
  const header = wantedHeader(headers);
  if (header === undefined || header === '') return undefined;
  const index = indexIn(header, clusterId);
  if (index === undefined) throw new RequestError('invalid_request', `${indexHeader} belongs to another cluster`);
  return index;
}
