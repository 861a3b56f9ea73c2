import { memoryStore, StoreError } from '@transitd/storage-fsm';
import { expect } from 'chai';
import { clockOf } from '../../../process/test/test-clock.ts';
import { isOperationToken, OperationTokens, operationTokenMs } from '../../src/node/operation-tokens.ts';

const path = 'core/replication/operation-token';
const codeOf = (task: Promise<unknown>): Promise<unknown> =>
  task.then(
    () => 'done',
    (error: unknown) => (error as { code?: string }).code,
  );
const nothing = async (): Promise<void> => undefined;

describe('the operation token of a secondary', () => {
  let store: ReturnType<typeof memoryStore>;
  let nowMs = 0;
  let tokens: OperationTokens;
  beforeEach(() => {
    store = memoryStore();
    nowMs = 1_000_000;
    tokens = new OperationTokens(
      store,
      clockOf(() => nowMs),
    );
  });

  it('is stored as a hash', async () => {
    const token = await tokens.issue();
    expect(isOperationToken(token)).to.equal(true);
    const text = Buffer.from((await store.get(path))?.value ?? '').toString();
    expect(text).not.to.contain(token.slice(3));
  });

  it('is valid on the next active node, until it expires', async () => {
    const token = await tokens.issue();
    const next = new OperationTokens(
      store,
      clockOf(() => nowMs),
    );
    nowMs += operationTokenMs - 1;
    expect(await codeOf(next.use(token, 'reads', nothing))).to.equal('done');
    nowMs += 1;
    expect(await codeOf(next.use(token, 'reads', nothing))).to.equal('operation_token');
    expect(await codeOf(next.delete(token))).to.equal('operation_token');
  });

  it('is refused as soon as it has expired by one of two clocks that disagree', async () => {
    let aheadMs = 0;
    const disagreeing = new OperationTokens(
      store,
      clockOf(
        () => nowMs + aheadMs,
        () => nowMs,
      ),
    );
    const token = await disagreeing.issue();
    expect(await codeOf(disagreeing.use(token, 'reads', nothing))).to.equal('done');
    aheadMs = operationTokenMs;
    expect(await codeOf(disagreeing.use(token, 'reads', nothing))).to.equal('operation_token');
  });

  it('authorizes one change at a time', async () => {
    const token = await tokens.issue();
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = tokens.use(token, 'changes', () => promise);
    const second = await codeOf(tokens.use(token, 'changes', nothing));
    resolve();
    await first;
    expect(second).to.equal('operation_token');
    expect(await store.get(path)).to.equal(undefined);
  });

  it('authorizes reading while a change waits, and nothing after it', async () => {
    const token = await tokens.issue();
    const { promise, resolve } = Promise.withResolvers<void>();
    const change = tokens.use(token, 'changes', () => promise);
    expect(await codeOf(tokens.use(token, 'reads', nothing))).to.equal('done');
    resolve();
    await change;
    expect(await codeOf(tokens.use(token, 'reads', nothing))).to.equal('operation_token');
  });

  it('is not handed out if it could not be stored', async () => {
    store.commit = async () => ({ outcome: 'conflict', index: 1, revision: 1 });
    expect(await codeOf(tokens.issue())).to.equal('busy');
  });

  for (const [what, code, left] of [
    ['a change that may have been made', 'outcome_unknown', false],
    ['no change', 'not_leader', true],
  ] as const)
    it(`${left ? 'survives' : 'ends with'} ${what}`, async () => {
      const token = await tokens.issue();
      const failing = async (): Promise<never> => {
        throw new StoreError(code, 'a test');
      };
      expect(await codeOf(tokens.use(token, 'changes', failing))).to.equal(code);
      expect(await codeOf(tokens.use(token, 'reads', nothing))).to.equal(left ? 'done' : 'operation_token');
      expect(await codeOf(tokens.use(token, 'changes', nothing))).to.equal(left ? 'done' : 'operation_token');
    });

  it('is not accepted again by the node that used it, also if its record could not be deleted', async () => {
    const token = await tokens.issue();
    const { commit } = store;
    const task = async (): Promise<void> => {
      store.commit = async () => {
        throw new StoreError('not_leader', 'a test');
      };
    };
    await tokens.use(token, 'changes', task);
    store.commit = commit;
    expect(await codeOf(tokens.use(token, 'changes', nothing))).to.equal('operation_token');
    expect(await codeOf(tokens.use(token, 'reads', nothing))).to.equal('operation_token');
  });
});
