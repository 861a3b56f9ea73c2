export * from './store.ts';
export * from './transaction.ts';
