export * from './ports.ts';
export * from './types.ts';
