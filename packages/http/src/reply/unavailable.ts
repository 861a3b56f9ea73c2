import { StoreError } from '@transitd/storage-fsm';
import { RequestError } from './request-error.ts';

const uninitialized = 'transitd is not initialized';

/** The refusal of a node that does not serve. */
export const unavailable = ({ initialized }: { readonly initialized: boolean }): StoreError =>
  new StoreError('sealed', initialized ? 'transitd is sealed' : uninitialized);

/** The refusal of what only an initialised node can be asked. */
export const notInitialized = (): RequestError => new RequestError('not_initialized', uninitialized);
