/**
 * Returns Node's HTTP module. An import of it reads each of its exports, so it loads Node's `fetch` and HTTP/2 too: 20 to 45 ms of CPU time
 * in each thread.
 */
export const nodeHttp = (): typeof import('node:http') => process.getBuiltinModule('node:http');
