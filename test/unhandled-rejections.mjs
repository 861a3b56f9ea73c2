// Mocha 12 passes over rejections that nobody handles, which end a node in operation: a test during which one comes up fails.
const reasons = [];
const note = (reason) => reasons.push(reason);

/** Mocha takes every listener off between two files of one process. */
const listen = () => process.off('unhandledRejection', note).on('unhandledRejection', note);

function expectNone() {
  const [first] = reasons.splice(0);
  if (first === undefined) return;
  throw new Error(`a rejection that nobody handles: ${first instanceof Error ? first.stack : String(first)}`, { cause: first });
}

listen();
export const mochaHooks = { beforeAll: listen, afterEach: expectNone, afterAll: expectNone };
