import { type Connect, exchangeWith } from '../../src/http/exchange.ts';

/** Connects each address of a provider with its mock on loopback; any other address fails the test. */
export const connectTo =
  (mocks: Readonly<Record<string, () => string>>): Connect =>
  (address) => {
    const mock = mocks[address];
    if (mock === undefined) throw new Error(`the test has no mock for ${address}`);
    return (request) => exchangeWith(mock(), { skipVerify: false })(request);
  };
