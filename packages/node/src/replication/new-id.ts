import { randomBytes } from 'node:crypto';

/** Returns a random id of a set or an epoch. */
export const newId = (): string => randomBytes(16).toString('hex');
