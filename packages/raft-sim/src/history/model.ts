import type { Answer, Operation, Request } from './operation.ts';

/**
 * The values that one key can have, each with a number, so that equal values have equal numbers: a register by its content, a list by a
 * path in a tree of all known lists.
 */
export class Values {
  /** Maps (list, value) to the list extended by that value. List 0 is empty. */
  readonly #longer = new Map<string, number>();
  readonly #lengths = [0];
  /** The longest list that any client read. Lists only grow, so every list on the way to it is a prefix of it. */
  readonly #longest: readonly number[];

  constructor(history: readonly Operation[]) {
    let longest: readonly number[] = [];
    for (const { returned } of history) {
      const answer = returned?.answer;
      if (typeof answer === 'object' && 'values' in answer && answer.values.length > longest.length) longest = answer.values;
    }
    this.#longest = longest;
  }

  /** Undefined for a list from which the longest one can no longer be reached. */
  appendable(list: number, value: number): number | undefined {
    const next = this.#longest[this.#lengths[list] ?? 0];
    return next === undefined || next === value ? this.appended(list, value) : undefined;
  }

  appended(list: number, value: number): number {
    const path = `${list},${value}`;
    const known = this.#longer.get(path);
    if (known !== undefined) return known;
    const longer = this.#lengths.length;
    this.#longer.set(path, longer);
    this.#lengths.push((this.#lengths[list] ?? 0) + 1);
    return longer;
  }

  list(values: readonly number[]): number {
    return values.reduce((list, value) => this.appended(list, value), 0);
  }
}

export type KeyKind = 'register' | 'list';

/** One operation, prepared so that a step of the search only compares numbers. */
export interface Step {
  /** Returns the value after this operation, or undefined if its answer is impossible for this value. */
  next(value: number): number | undefined;
}

/** The sequential specification of a request and its answer; without an answer, every outcome is possible. */
export function stepOf(values: Values, kind: KeyKind, request: Request, answer: Answer | undefined): Step {
  switch (request.kind) {
    case 'write':
      return { next: () => request.value };
    case 'append':
      return { next: (value) => values.appendable(value, request.value) };
    case 'cas': {
      const swapped = answer !== undefined && typeof answer === 'object' && 'swapped' in answer ? answer.swapped : undefined;
      return {
        next(value) {
          const swaps = value === request.from;
          if (swapped !== undefined && swapped !== swaps) return undefined;
          return swaps ? request.to : value;
        },
      };
    }
    case 'read': {
      if (answer === undefined || typeof answer !== 'object' || !('values' in answer)) return { next: (value) => value };
      const seen = kind === 'list' ? values.list(answer.values) : (answer.values[0] ?? 0);
      return { next: (value) => (value === seen ? value : undefined) };
    }
  }
}
