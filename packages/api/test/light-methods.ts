import { authMethods } from '../src/auth/auth-methods.ts';
import { userpassWith } from '../src/auth/userpass/method.ts';

const light = userpassWith({ cost: 16, blockSize: 8, parallelization: 1 });

/** The auth methods, with cheap hashing of passwords, since tests make many guesses. */
export const lightMethods = authMethods.map((method) => (method.type === light.type ? light : method));
