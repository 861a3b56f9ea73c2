import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';

/** Returns the part of a response that a limit needs. */
export const caller = () => new EventEmitter() as ServerResponse;
