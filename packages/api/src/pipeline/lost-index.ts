import { indexHeader, indexHeaders, indexWanted, replyWithWarnings, wantsIndex } from '@transitd/http';
import type { Node } from '@transitd/node';
import { whereOf } from '../operation/operation.ts';
import { type Outcome, Replied } from './outcome.ts';
import type { RoutedRequest } from './request.ts';

const warning =
  `${indexHeader} names a state that this cluster does not have: ` +
  'it was promoted without it, or the index is of another cluster. The response has a new index';

/**
 * Adds a warning and a new index to the response to a request whose index was lost in a promotion. A client that sends the new index from
 * now on reads its own writes again.
 */
export function warnedOfLostIndex(
  outcome: Outcome,
  { req: { headers }, verb, operation }: Pick<RoutedRequest, 'req' | 'verb' | 'operation'>,
  { eligibility }: Pick<Node, 'eligibility'>,
): Outcome {
  if (!wantsIndex(headers) || !(outcome instanceof Replied) || whereOf(operation, verb) === 'here') return outcome;
  const wanted = indexWanted(headers);
  const index = eligibility.serviceIndex;
  if (wanted === undefined || index === undefined || !eligibility.hasLost(wanted)) return outcome;
  const reply = replyWithWarnings(outcome.reply, [warning]);
  return new Replied({ ...reply, headers: { ...indexHeaders(index), ...reply.headers } });
}
