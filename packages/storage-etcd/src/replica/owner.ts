// The owner of the active key: the value of the key, which names one run of a node.
import { randomBytes } from 'node:crypto';

/** Returns the owner for one run of a node. Two runs of one node have different owners. */
export const newOwner = (nodeId: number): string => `${nodeId} ${randomBytes(8).toString('hex')}`;

/** Returns the id of the node that an owner names. */
export const nodeIdOf = (owner: string): number => Number(/^\d+/.exec(owner)?.[0] ?? 0);
