/** A rule of the protocol was broken in a simulated cluster. The facts are terms, indexes and ids. */
export class Violation extends Error {
  override readonly name = 'Violation';
  readonly rule: string;

  constructor(rule: string, facts: Readonly<Record<string, unknown>>) {
    super(`${rule} ${JSON.stringify(facts)}`);
    this.rule = rule;
  }
}

export function holds(rule: string, holding: boolean, facts: () => Readonly<Record<string, unknown>>): asserts holding {
  if (!holding) throw new Violation(rule, facts());
}
