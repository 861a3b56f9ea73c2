import { expect } from 'chai';
import type { AuditedServer } from '../process/audited-server.ts';
import { isStalled, plaintextsOf, runSuite, type Suite, selecting, waiting } from './conformance.ts';

/**
 * Expects that every case of a suite passes, except the listed ones, and that each of those really fails.
 * @param mayStall - cases may fail because a process was not scheduled for seconds; these cases run once more
 */
export async function passes(
  suite: Suite,
  { server, rootToken, auditFile }: AuditedServer,
  { mayStall = false } = {},
): Promise<void> {
  server.secrets.add('the root token', rootToken);
  for (const plaintext of plaintextsOf(suite)) server.secrets.add('a plaintext of a case', plaintext);
  const target = { url: server.url, token: rootToken, auditFile };
  const first = await runSuite(suite, target);
  const stalled = mayStall ? first.filter(isStalled).map(({ id }) => id) : [];
  const again = stalled.length > 0 ? await runSuite(suite, { ...target, args: selecting(suite, stalled) }) : [];
  const outcomes = first.map((outcome) => again.find(({ id }) => id === outcome.id) ?? outcome);
  const list = waiting(suite);
  const failed = outcomes.filter(({ passed }) => !passed);
  const unexpected = failed.filter(({ id }) => !list.has(id)).map(({ id, detail }) => `${id}: ${detail}`);
  expect(unexpected, 'cases that fail and are not listed').to.deep.equal([]);
  const failedIds = new Set(failed.map(({ id }) => id));
  expect(
    [...list.keys()].filter((id) => !failedIds.has(id)),
    'listed cases that do not fail: take them off the list',
  ).to.deep.equal([]);
  console.log(`      ${suite}: ${outcomes.length - failed.length} of ${outcomes.length} cases pass, ${failed.length} wait`);
}
