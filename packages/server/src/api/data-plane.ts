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
  { service }: Pick<Node, 'service'>,
  { segments, trailingSlash }: RequestPath,
  verb: Verb,
): { readonly operation: GuardedOperation; readonly params: Readonly<Record<string, string>> } | undefined {
  const mount = verb === 'POST' && !trailingSlash ? service?.mounts.under(segments) : undefined;
  const word = mount && segments[mount.depth];
  if (mount === undefined || word === undefined) return undefined;
  const route = dataOperations.get(word);
  const behindWord = mount.depth + 1;
  const given = segments.length - behindWord;
  if (route === undefined || given < route.required || given > route.params.length) return undefined;
  const params: Record<string, string> = { mount: mount.path };
  for (let at = 0; at < given; at++) params[route.params[at] ?? ''] = segments[behindWord + at] ?? '';
  const { name } = params;
  return name === undefined || isKeyName(name) ? { operation: route.operation, params } : undefined;
}
