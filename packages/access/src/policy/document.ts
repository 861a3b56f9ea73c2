/** A value in a policy's text, with the offset at which it begins. */
export type Value =
  | { readonly kind: 'text'; readonly at: number; readonly text: string }
  | { readonly kind: 'number'; readonly at: number; readonly number: number }
  | { readonly kind: 'bool'; readonly at: number; readonly bool: boolean }
  | { readonly kind: 'null'; readonly at: number }
  | { readonly kind: 'list'; readonly at: number; readonly items: readonly Value[] }
  | { readonly kind: 'object'; readonly at: number; readonly members: readonly Member[] };

/** One `name = value` or `name { … }`. A label, as in `path "p" { … }`, becomes an object with one member. */
export interface Member {
  readonly name: string;
  readonly at: number;
  readonly value: Value;
}

/** The syntax tree of a policy's text. HCL and JSON give the same tree. */
export type Document = Extract<Value, { kind: 'object' }>;

/** Maximum nesting depth of lists and objects. The parameters of a path need four levels. */
export const documentDepthMax = 16;

/**
 * A mistake in a policy's text. The message names the mistake and its position. It quotes a word of the text only if the word is a
 * misspelled name: other text might be a secret.
 */
export class PolicyMistake extends Error {
  override readonly name = 'PolicyMistake';
  /** Offset in the text, in UTF-16 code units. */
  readonly at: number;
  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

/** All mistakes in a policy's text, in the order of the text; at least one. */
export class PolicyMistakes extends Error {
  override readonly name = 'PolicyMistakes';
  readonly mistakes: readonly PolicyMistake[];
  constructor(mistakes: readonly PolicyMistake[]) {
    super('the policy has mistakes');
    this.mistakes = mistakes;
  }
}

/** Returns the `line:column` of an offset, both from 1; columns count UTF-16 code units. */
export function positionOf(text: string, at: number): string {
  let line = 1;
  let lineStart = 0;
  for (let end = text.indexOf('\n'); end >= 0 && end < at; end = text.indexOf('\n', lineStart)) {
    line += 1;
    lineStart = end + 1;
  }
  return `${line}:${at - lineStart + 1}`;
}
