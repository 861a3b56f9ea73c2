import { duration, RequestError } from '@transitd/http';
import { type Node, useFault } from '@transitd/node';
import type { LossCheck, TransitEngine } from '@transitd/transit-engine';

/** Field of the operations that take versions away. */
export const unlessUsedWithin = {
  ...duration(
    'Refuse if a version that would go was used on any node within this time, at least a second, or if that is not known',
  ),
  condition: true,
} as const;

/**
 * Returns the check that an operation makes before it takes versions away; undefined if the caller does not ask for it.
 * @param withinS - value of the field
 * @throws RequestError for a time of zero and for anything but a number: an empty text must not skip the check
 */
export function unlessUsed(node: Node, engine: TransitEngine, withinS: unknown): LossCheck | undefined {
  if (withinS === undefined) return undefined;
  if (typeof withinS !== 'number' || !(withinS >= 1))
    throw new RequestError('invalid_request', 'unless_used_within must be at least 1s; omit it to not ask');
  return async ({ name }, goes) => {
    const current = await node.requireMember().usage.of(engine, name);
    const fault = useFault(current, goes, { withinMs: withinS * 1000, nowMs: node.clock.dueMs() });
    if (fault !== undefined) throw new RequestError('invalid_request', `unless_used_within: ${fault}; nothing was changed`);
  };
}
