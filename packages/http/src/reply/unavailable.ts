import { StoreError } from '@transitd/storage-fsm';
import { RequestError } from './request-error.ts';

const uninitialized = 'transitd is not initialized';

/** Returns the error of a node that is sealed or not initialized. */
export const unavailable = ({ initialized }: { readonly initialized: boolean }): StoreError =>
  new StoreError('sealed', initialized ? 'transitd is sealed' : uninitialized);

/** Returns the error of an operation that needs an initialized node. */
export const notInitialized = (): RequestError => new RequestError('not_initialized', uninitialized);
