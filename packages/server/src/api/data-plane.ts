import { isKeyName } from '@transitd/transit-engine';
import type { RequestPath } from '../http/path.ts';
import type { Node } from '../node/node.ts';
import type { GuardedOperation, Verb } from './operation.ts';
import { dataOperations } from './transit-data.ts';

/**
 * What callers ask all day, `POST <mount>/encrypt/<name>` and the like, found by two look-ups before Express sees the request.
 * Undefined for everything that is not exactly that: Express finds its operation, the same one where it exists.
 */
export function dataPlane(
  { service }: Node,
  { segments, trailingSlash }: RequestPath,
  verb: Verb,
): { readonly operation: GuardedOperation; readonly params: Readonly<Record<string, string>> } | undefined {
  const [mount, word, name] = segments;
  if (verb !== 'POST' || segments.length !== 3 || trailingSlash) return undefined;
  if (mount === undefined || word === undefined || name === undefined || service?.engines.has(mount) !== true) return undefined;
  const operation = dataOperations.get(word);
  return operation === undefined || !isKeyName(name) ? undefined : { operation, params: { mount, name } };
}
