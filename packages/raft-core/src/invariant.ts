/** A bug in this program. It stops the node: that is safer than serving wrong state. */
export class InvariantViolation extends Error {
  override readonly name: string = 'InvariantViolation';
}

/** Throws unless the rule holds. Facts are terms, indexes and ids, never a record's content. @throws InvariantViolation */
export function invariant(holds: boolean, rule: string, facts: Readonly<Record<string, unknown>>): asserts holds {
  if (!holds) throw new InvariantViolation(`${rule} ${JSON.stringify(facts)}`);
}
