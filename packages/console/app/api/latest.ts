import type { ApiError } from './request.ts';

/** The newest state of something that changes while the page is open. */
export interface Latest<T> {
  /** The newest answer; kept while later requests fail. */
  readonly value?: T;
  /** Why the newest request failed; absent after a success. */
  readonly error?: ApiError;
}

/** Returns the state after a failure. */
export const failed = <T>({ value }: Latest<T>, error: ApiError): Latest<T> => ({ ...(value !== undefined && { value }), error });
