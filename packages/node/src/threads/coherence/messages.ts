import type { Changes, StoreErrorCode } from '@transitd/storage-fsm';

/**
 * Number of the newest published change. It wraps around after 2^32 changes, so numbers are compared only with {@link isAfter}, which is
 * right as long as they are less than 2^31 apart.
 */
export type ChangeNumber = number;

/** A message of the main thread to a gateway. All messages use one port, which delivers them in the order of posting. */
export type GatewayMessage = ChangeMessage | ReplyMessage;

/** Entries that were applied together changed these records. `number` is one more than the number of the previous change. */
export interface ChangeMessage {
  readonly kind: 'changes';
  readonly number: ChangeNumber;
  readonly changes: Changes;
}

/** The result of a request of the gateway. The state that it was read from includes the change `number`, and may be newer. */
export interface ReplyMessage {
  readonly kind: 'reply';
  readonly number: ChangeNumber;
  readonly id: number;
  readonly result: ReplyResult;
}

/** `refused`: a StoreError; `failed`: any other error, which is a bug. */
export type ReplyResult =
  | { readonly kind: 'value'; readonly value: unknown }
  | { readonly kind: 'refused'; readonly code: StoreErrorCode; readonly message: string }
  | { readonly kind: 'failed'; readonly error: Error };

/** Returns the number after `number`. */
export const next = (number: ChangeNumber): ChangeNumber => (number + 1) | 0;

/** Returns whether `left` was published after `right`. */
export const isAfter = (left: ChangeNumber, right: ChangeNumber): boolean => ((left - right) | 0) > 0;

/** Returns how many changes lie between two numbers. */
export const distance = (newer: ChangeNumber, older: ChangeNumber): number => (newer - older) | 0;
