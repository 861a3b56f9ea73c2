/** A client's request for one key. A key holds either a number (register; 0 at first) or a list of numbers (empty at first). */
export type Request =
  | { readonly kind: 'read' }
  | { readonly kind: 'write'; readonly value: number }
  | { readonly kind: 'cas'; readonly from: number; readonly to: number }
  | { readonly kind: 'append'; readonly value: number };

/** The client's answer: the value of a read, or whether a compare-and-set found the expected value. */
export type Answer = { readonly values: readonly number[] } | { readonly swapped: boolean } | 'done';

/**
 * One call of one client on one key. Without `answer` its outcome is unknown: it may take effect at any time after its call, even after
 * everything else, or never.
 */
export interface Operation {
  readonly request: Request;
  /** Positions on one clock that orders all calls and returns of a history. */
  readonly calledAt: number;
  readonly returned?: { readonly at: number; readonly answer: Answer };
}
