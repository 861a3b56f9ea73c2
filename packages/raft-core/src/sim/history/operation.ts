/** What a client asks of one key. A key holds either one number (register; 0 at first) or a list of numbers (empty at first). */
export type Request =
  | { readonly kind: 'read' }
  | { readonly kind: 'write'; readonly value: number }
  | { readonly kind: 'cas'; readonly from: number; readonly to: number }
  | { readonly kind: 'append'; readonly value: number };

/** What the client heard: what a read saw, or whether a compare-and-set found what it expected. */
export type Answer = { readonly values: readonly number[] } | { readonly swapped: boolean } | 'done';

/**
 * One call of one client on one key. Without `answer` nobody knows whether it took effect: it may do so at any time after its
 * call, also after everything else, or never.
 */
export interface Operation {
  readonly request: Request;
  /** Positions on one clock that orders all calls and returns of a history. */
  readonly calledAt: number;
  readonly returned?: { readonly at: number; readonly answer: Answer };
}
