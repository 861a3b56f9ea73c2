// Mocha 12 ignores unhandled rejections, which end a node in production. So a test during which one occurs fails.
const reasons = [];
const note = (reason) => reasons.push(reason);

/** Mocha removes all listeners between two files of one process. */
const listen = () => process.off('unhandledRejection', note).on('unhandledRejection', note);

function expectNone() {
  const [first] = reasons.splice(0);
  if (first === undefined) return;
  throw new Error(`a rejection that nobody handles: ${first instanceof Error ? first.stack : String(first)}`, { cause: first });
}

listen();
export const mochaHooks = { beforeAll: listen, afterEach: expectNone, afterAll: expectNone };
