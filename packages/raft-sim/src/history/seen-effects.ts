import type { Operation } from './operation.ts';

/**
 * Closes operations without an answer whose value was read: such an operation took effect before that read returned. The open operation
 * gets the earliest such return as its own. This bounds the search for an order and excludes no valid order. The written values must differ
 * from each other.
 */
export function withSeenEffects(history: readonly Operation[]): readonly Operation[] {
  const seenAt = new Map<number, number>();
  for (const { request, returned } of history) {
    if (request.kind !== 'read' || returned === undefined || typeof returned.answer !== 'object') continue;
    const values = 'values' in returned.answer ? returned.answer.values : [];
    for (const value of values) seenAt.set(value, Math.min(returned.at, seenAt.get(value) ?? Number.POSITIVE_INFINITY));
  }
  return history.map((operation) => {
    const { request, returned } = operation;
    if (returned !== undefined || request.kind === 'read') return operation;
    const at = seenAt.get(request.kind === 'cas' ? request.to : request.value);
    if (at === undefined) return operation;
    return { ...operation, returned: { at, answer: request.kind === 'cas' ? { swapped: true } : 'done' } };
  });
}
