// Mocha 12 passes over rejections that nobody handles, which end a node in operation: a test during which one comes up fails.
const reasons = [];
process.on('unhandledRejection', (reason) => reasons.push(reason));

function expectNone() {
  const [first] = reasons.splice(0);
  if (first === undefined) return;
  throw new Error(`a rejection that nobody handles: ${first instanceof Error ? first.stack : String(first)}`, { cause: first });
}

export const mochaHooks = { afterEach: expectNone, afterAll: expectNone };
