import type { LogStore } from '@transitd/raft-core';
import { expect } from 'chai';
import { base, close, compact, contents, entries, entry, genesis, read, shown, write } from './log-calls.ts';

/** Creates logs for the suite. Each node begins empty, with `genesis` as its base. */
export interface LogStoreMaker {
  /** Opens the log of one node: a second call finds the entries of the first. */
  newNode(): Promise<{ open(): Promise<LogStore>; remove(): Promise<void> }>;
}

/** The contract of every `LogStore`. */
export function logStoreSuite(name: string, maker: LogStoreMaker): void {
  describe(`${name} as a LogStore`, () => {
    let node: Awaited<ReturnType<LogStoreMaker['newNode']>>;
    let log: LogStore;
    const term = (term: number, vote = 0) => ({ hardState: { term, vote, commit: 0 } });
    const reopen = async () => {
      await close(log);
      log = await node.open();
    };
    beforeEach(async () => {
      node = await maker.newNode();
      log = await node.open();
    });
    afterEach(async () => {
      await close(log).catch(() => undefined);
      await node.remove();
    });

    it('begins empty, at its base', () => {
      expect(log.start).to.deep.include({
        lastIndex: 0,
        bytes: 0,
        terms: [],
        confEntries: [],
        hardState: { term: 0, vote: 0, commit: 0 },
      });
      expect(log.start.base).to.deep.equal(genesis);
    });

    it('keeps its identity over restarts and increments its incarnation', async () => {
      const { nodeId, clusterId, incarnation } = log.start;
      await reopen();
      expect(log.start).to.include({ nodeId, clusterId });
      expect(log.start.incarnation).to.be.above(incarnation);
    });

    it('keeps term and vote', async () => {
      await write(log, term(4, 7));
      await reopen();
      expect(log.start.hardState).to.include({ term: 4, vote: 7 });
    });

    it('keeps entries of every type, also empty ones', async () => {
      const stored = [entry(1, 1, '', 'noop'), entry(2, 1, 'x'), entry(3, 1, 'members', 'conf'), entry(4, 2, '')];
      await write(log, { ...term(2), entries: stored });
      await reopen();
      expect(log.start).to.deep.include({
        lastIndex: 4,
        terms: [
          { term: 1, firstIndex: 1 },
          { term: 2, firstIndex: 4 },
        ],
      });
      expect(await contents(log)).to.deep.equal(shown(stored));
      expect(shown(log.start.confEntries)).to.deep.equal(['3/1/conf/members']);
    });

    it('acknowledges writes in order, and only after the call has returned', async () => {
      const answered: number[] = [];
      const writes = [1, 2, 3].map((index) =>
        write(log, { ...term(1), entries: [entry(index, 1)] }).then(() => answered.push(index)),
      );
      const inTurn = new Promise<boolean>((resolve) => {
        let returned = false;
        log.write({ entries: [] }, () => resolve(returned));
        returned = true;
      });
      expect(await inTurn).to.equal(true);
      await Promise.all(writes);
      expect(answered).to.deep.equal([1, 2, 3]);
    });

    it('lets an entry supersede all entries from its index on', async () => {
      await write(log, { ...term(1), entries: entries({ first: 1, last: 5 }, 1) });
      await write(log, { ...term(2), entries: [entry(3, 2)] });
      expect(shown(await read(log, 1, 3))).to.deep.equal(shown([entry(1, 1), entry(2, 1), entry(3, 2)]));
      await reopen();
      expect(log.start.lastIndex).to.equal(3);
      expect(await contents(log)).to.deep.equal(shown([entry(1, 1), entry(2, 1), entry(3, 2)]));
    });

    it('drops superseded configuration entries', async () => {
      await write(log, { ...term(1), entries: [entry(1, 1, 'a', 'conf'), entry(2, 1, 'b', 'conf')] });
      await write(log, { ...term(2), entries: [entry(2, 2)] });
      await reopen();
      expect(shown(log.start.confEntries)).to.deep.equal(['1/1/conf/a']);
    });

    it('limits a read to maxBytes, but returns at least one entry', async () => {
      await write(log, { ...term(1), entries: entries({ first: 1, last: 20 }, 1) });
      expect(await read(log, 3, 9, 0)).to.have.lengthOf(1);
      const some = await read(log, 3, 9, 200);
      expect(some.length).to.be.within(2, 6);
      expect(some[0]?.index).to.equal(3);
    });

    for (const [lo, hi] of [
      [0, 1],
      [2, 4],
      [4, 4],
      [3, 2],
    ] as const)
      it(`refuses to read ${lo}..${hi} of a log that holds 1..3`, async () => {
        await write(log, { ...term(1), entries: entries({ first: 1, last: 3 }, 1) });
        const error = await read(log, lo, hi).catch((error: Error) => error);
        expect(error).to.be.instanceOf(Error);
        expect(await read(log, 1, 3)).to.have.lengthOf(3);
      });

    it('drops the entries up to a new base and continues after it', async () => {
      const stored = [...entries({ first: 1, last: 4 }, 1), entry(5, 3, 'members', 'conf'), ...entries({ first: 6, last: 9 }, 3)];
      await write(log, { ...term(3), entries: stored });
      await compact(log, base(6, 3));
      expect(await read(log, 6, 7).catch((error: Error) => error)).to.be.instanceOf(Error);
      await reopen();
      expect(log.start).to.deep.include({ lastIndex: 9, terms: [{ term: 3, firstIndex: 7 }], confEntries: [] });
      expect(log.start.base).to.deep.equal(base(6, 3));
      const payload = stored.slice(6).reduce((sum, { data }) => sum + data.length, 0);
      expect(log.start.bytes).to.be.within(payload, payload + 3 * 64);
      await write(log, { entries: [entry(10, 3)] });
      expect(shown(await read(log, 7, 10))).to.deep.equal(shown(entries({ first: 7, last: 10 }, 3)));
    });

    it('can be emptied by moving its base to the last entry', async () => {
      await write(log, { ...term(1), entries: entries({ first: 1, last: 4 }, 1) });
      await compact(log, base(4, 1));
      await reopen();
      expect(log.start).to.deep.include({ lastIndex: 4, bytes: 0, terms: [] });
      await write(log, { entries: [entry(5, 1)] });
      expect(shown(await read(log, 5, 5))).to.deep.equal(shown([entry(5, 1)]));
    });

    it('never reports a commit index above its last entry', async () => {
      await write(log, { ...term(1), entries: entries({ first: 1, last: 3 }, 1) });
      log.noteCommit(2);
      await reopen();
      expect(log.start.hardState.commit).to.equal(2);
      log.noteCommit(30);
      await reopen();
      expect(log.start.hardState.commit).to.equal(3);
    });

    it('refuses every call after it is closed', async () => {
      await close(log);
      expect(await write(log, { entries: [entry(1, 1)] }).catch((error: Error) => error)).to.be.instanceOf(Error);
      expect(await read(log, 1, 1).catch((error: Error) => error)).to.be.instanceOf(Error);
    });
  });
}
