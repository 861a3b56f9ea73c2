import { noHandler, RequestError, unsupportedOperation, unsupportedPath } from '@transitd/http';
import type { GuardedOperation, OpenOperation } from '../operation/operation.ts';

/** Refuses a verb that the route does not have. It needs a token, so that callers without a token cannot learn which routes exist. */
export const guardedWithoutVerb: GuardedOperation = {
  name: 'unsupported',
  access: 'token',
  run: () => {
    throw unsupportedOperation();
  },
};

export const openWithoutVerb: OpenOperation = {
  name: 'unsupported',
  access: 'open',
  run: () => {
    throw new RequestError('unsupported_operation', '');
  },
};

/** Refuses a trailing slash on a path that is not a list; also needs a token. */
export const slashAtEnd: GuardedOperation = {
  name: 'unknown',
  access: 'token',
  run: () => {
    throw new RequestError('invalid_path', 'only the path of a list may end with a slash');
  },
};

export const unknownPath: GuardedOperation = {
  name: 'unknown',
  access: 'token',
  run: ({ services }, { path }) => {
    const known =
      /^(?:sys|auth\/token)\//.test(path) ||
      services.mounts.list.some((mount) => path === mount.path || path.startsWith(`${mount.path}/`));
    throw known ? unsupportedPath() : noHandler(path);
  },
};
