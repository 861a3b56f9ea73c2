import { RequestError } from '@transitd/http';

/** Longest path that a request can have: Node.js limits the whole head of a request to 16 KiB. */
const pathCharsMax = 16 * 1024;

/** Checks paths that are evaluated against policies. Splitting a path of megabytes would stop all other requests for seconds. */
export function checkGivenPaths(paths: readonly string[], pathsMax: number): void {
  if (paths.length > pathsMax) throw new RequestError('invalid_request', `at most ${pathsMax} paths at once`);
  if (paths.some(({ length }) => length > pathCharsMax))
    throw new RequestError('invalid_request', `a path has at most ${pathCharsMax} characters`);
}
