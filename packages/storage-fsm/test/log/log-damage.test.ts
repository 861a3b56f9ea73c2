import { expect } from 'chai';
import { createNode, hasNode } from '../../src/directory/node-directory.ts';
import { NodeStateFile } from '../../src/directory/node-state.ts';
import { StorageDamaged } from '../../src/errors.ts';
import type { SegmentLogOptions } from '../../src/log/open-log.ts';
import { recordHeaderBytes } from '../../src/log/record.ts';
import { segmentHeaderBytes } from '../../src/log/segment.ts';
import { SegmentLog } from '../../src/log/segment-log.ts';
import { MemoryDisk } from '../directory/memory-disk.ts';
import { base, close, compact, contents, entries, entry, genesis, shown, write } from './log-calls.ts';

const small: SegmentLogOptions = { segmentBytes: 500, growBytes: 128, every: () => () => undefined };
const openOn = (disk: MemoryDisk) => SegmentLog.open('/node', { ...small, disk });

/** A node's files and the content that must not be lost. */
interface Stopped {
  readonly files: ReadonlyMap<string, Buffer>;
  /** The current log after its base; its last `unmarked` entries were stored after the high-water mark was written. */
  readonly log: readonly string[];
  readonly marked: number;
  readonly hardState: { readonly term: number; readonly vote: number };
}

/** Creates a node with several segments, superseded and configuration entries, and a compaction. */
async function stoppedNode(how: 'cleanly' | 'without warning'): Promise<Stopped> {
  const disk = new MemoryDisk();
  const first = await newNode(disk);
  for (let index = 1; index <= 16; index += 2)
    await write(first, { ...term(1, 7), entries: entries({ first: index, last: index + 1 }, 1) });
  await write(first, { ...term(2, 9), entries: [entry(13, 2, 'members', 'conf'), ...entries({ first: 14, last: 17 }, 2)] });
  first.noteCommit(14);
  await compact(first, base(9, 1));
  await close(first);
  const second = await openOn(disk);
  await write(second, { entries: entries({ first: 18, last: 20 }, 2) });
  for (const index of [21, 22, 23]) await write(second, { entries: [entry(index, 2)] });
  if (how === 'cleanly') await close(second);
  const log = [...entries({ first: 10, last: 12 }, 1), entry(13, 2, 'members', 'conf'), ...entries({ first: 14, last: 23 }, 2)];
  return { files: disk.files(), log: shown(log), marked: (how === 'cleanly' ? 23 : 17) - 9, hardState: { term: 2, vote: 9 } };
}

const term = (term: number, vote = 0) => ({ hardState: { term, vote, commit: 0 } });
async function newNode(disk: MemoryDisk): Promise<SegmentLog> {
  await createNode('/node', { clusterId: 'c', nodeId: 7, base: genesis }, disk);
  return openOn(disk);
}
const rejection = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('a damaged node', () => {
  let node: Stopped;
  const logFiles = () => [...node.files.keys()].filter((path) => path.endsWith('.log')).sort();
  /** Opens the node and returns `damaged` or the number of its entries. */
  async function openWith(path: string, content: Buffer | undefined): Promise<'damaged' | number> {
    const files = new Map(node.files);
    if (content === undefined) files.delete(path);
    else files.set(path, content);
    let log: SegmentLog;
    try {
      log = await openOn(MemoryDisk.of(files));
    } catch (error) {
      expect(error).to.be.instanceOf(StorageDamaged);
      const { message } = error as StorageDamaged;
      expect(message)
        .to.match(/^\/node\/.+: (restore|run) .+\.$/)
        .and.not.to.contain('\n');
      return 'damaged';
    }
    const found = await contents(log);
    expect(log.start.hardState).to.include(node.hardState);
    expect(found).to.deep.equal(node.log.slice(0, found.length));
    return found.length;
  }
  const flipped = (content: Buffer, at: number, bit: number): Buffer => {
    const changed = Buffer.from(content);
    changed.writeUInt8(changed.readUInt8(at) ^ (1 << bit), at);
    return changed;
  };

  /** Returns the files with one bit of an entry flipped. */
  const withBad = (text: string): [path: string, content: Buffer] => {
    const [path, content] = [...node.files].find(([, content]) => content.includes(text)) ?? ['', Buffer.alloc(1)];
    return [path, flipped(content, content.indexOf(text), 0)];
  };

  beforeEach(async () => {
    node = await stoppedNode('without warning');
  });

  for (const how of ['cleanly', 'without warning'] as const)
    describe(`after it stopped ${how}`, () => {
      beforeEach(async () => {
        node = await stoppedNode(how);
      });

      it('opens complete if nothing has changed', async () => {
        expect(await openWith('/node/node.state', node.files.get('/node/node.state'))).to.equal(node.log.length);
      });

      it('is refused or has all entries below the mark, whichever byte of its log has changed', async () => {
        const outcomes = new Set<'damaged' | number>();
        for (const path of logFiles()) {
          const content = node.files.get(path) ?? Buffer.alloc(0);
          for (let at = 0; at < content.length; at++) {
            const outcome = await openWith(path, flipped(content, at, at % 8));
            if (outcome !== 'damaged') expect(outcome, `${path} byte ${at}`).to.be.at.least(node.marked);
            outcomes.add(outcome);
          }
        }
        expect(outcomes).to.include('damaged').and.to.include(node.log.length);
      });

      it('is refused or has its newest term, vote and all entries, whichever byte of node.state has changed', async () => {
        const path = '/node/node.state';
        const content = node.files.get(path) ?? Buffer.alloc(0);
        for (let at = 0; at < content.length; at += at % 65536 < 800 ? 3 : 997)
          expect(await openWith(path, flipped(content, at, at % 8)), `byte ${at}`).to.equal(node.log.length);
      });

      it('is refused or has all entries below the mark, wherever a file is truncated', async () => {
        for (const [path, content] of node.files)
          for (let length = 0; length < content.length; length += path.endsWith('.log') ? 7 : 4999) {
            const outcome = await openWith(path, content.subarray(0, length));
            if (outcome !== 'damaged') expect(outcome, `${path} to ${length}`).to.be.at.least(node.marked);
          }
      });
    });

  it('is refused when a file with entries below the mark is missing', async () => {
    for (const path of [...logFiles().slice(0, -1), '/node/node.state'])
      expect(await openWith(path, undefined), path).to.equal('damaged');
  });

  it('is refused when a segment was replaced by another segment', async () => {
    const [first, second] = logFiles();
    expect(await openWith(first ?? '', node.files.get(second ?? ''))).to.equal('damaged');
  });

  it('is refused when both slots of node.state are damaged', async () => {
    expect(await openWith('/node/node.state', Buffer.alloc(2 * 65536))).to.equal('damaged');
  });

  for (const slot of [0, 1])
    it(`keeps its newest vote without slot ${slot} of node.state`, async () => {
      const path = '/node/node.state';
      const content = Buffer.from(node.files.get(path) ?? Buffer.alloc(0));
      content.fill(0xff, slot * 65536, (slot + 1) * 65536);
      expect(await openWith(path, content)).to.equal(node.log.length);
    });

  it('is not taken for an empty directory when node.state is gone', async () => {
    const files = new Map([...node.files].filter(([path]) => path.endsWith('.log')));
    const error = await hasNode('/node', MemoryDisk.of(files)).catch((error: unknown) => error);
    expect(error).to.be.instanceOf(StorageDamaged);
  });

  it('is refused when a batch is damaged and later batches are intact', async () => {
    for (const index of [19, 22])
      expect(await openWith(...withBad(`entry ${index} of term 2`)), String(index)).to.equal('damaged');
  });

  it('drops a damaged last batch above the mark, which looks like a torn batch', async () => {
    expect(await openWith(...withBad('entry 23 of term 2'))).to.equal(node.log.length - 1);
  });

  it('continues after dropping a batch, and finds the entries stored afterwards', async () => {
    const disk = MemoryDisk.of(new Map(node.files).set(...withBad('entry 23 of term 2')));
    const cut = await openOn(disk);
    expect(cut.start.lastIndex).to.equal(22);
    const segment = disk.files().get(logFiles().at(-1) ?? '') ?? Buffer.alloc(0);
    expect(segment.includes('23 of term 2')).to.equal(false);
    await write(cut, { entries: [entry(23, 2, 'again')] });
    await close(cut);
    expect((await contents(await openOn(disk))).at(-1)).to.equal('23/2/normal/again');
  });

  it('is refused when log and state do not match', async () => {
    const log = await openOn(MemoryDisk.of(node.files));
    for (const flushed of [9, 23]) log.verifyAgainstState(flushed);
    for (const flushed of [8, 24]) expect(() => log.verifyAgainstState(flushed), String(flushed)).to.throw(StorageDamaged);
  });

  it('is refused when node.state has an older term than the newest entry', async () => {
    const disk = new MemoryDisk();
    const log = await newNode(disk);
    const old = disk.files().get('/node/node.state') ?? Buffer.alloc(0);
    await write(log, { ...term(3), entries: [entry(1, 3)] });
    const mixed = MemoryDisk.of(disk.files().set('/node/node.state', old));
    expect(await rejection(openOn(mixed))).to.be.instanceOf(StorageDamaged);
  });

  it('is refused when its log begins above its base', async () => {
    const disk = MemoryDisk.of(node.files);
    const path = '/node/node.state';
    const { value } = await NodeStateFile.open(disk, path);
    await NodeStateFile.create(disk, { directory: '/node', path }, { ...value, base: genesis });
    expect(await rejection(openOn(disk))).to.be.instanceOf(StorageDamaged);
  });

  it('is refused when its only segment is gone, even before the first mark', async () => {
    const disk = new MemoryDisk();
    const log = await newNode(disk);
    await write(log, { ...term(1), entries: [entry(1, 1)] });
    await disk.remove(segment(1));
    expect(await rejection(openOn(MemoryDisk.of(disk.files())))).to.be.instanceOf(StorageDamaged);
  });

  it('is refused when the segment whose entries superseded others is gone', async () => {
    const disk = new MemoryDisk();
    const log = await newNode(disk);
    await write(log, { ...term(1), entries: entries({ first: 1, last: 8 }, 1) });
    await write(log, { ...term(2), entries: entries({ first: 5, last: 8 }, 2) });
    await close(log);
    await disk.remove(segment(2));
    expect(await rejection(openOn(MemoryDisk.of(disk.files())))).to.be.instanceOf(StorageDamaged);
  });

  describe('with files from another history of the same node', () => {
    let files: Map<string, Buffer>;
    let others: Map<string, Buffer>;
    beforeEach(async () => {
      const disk = new MemoryDisk();
      await close(await newNode(disk));
      const past = async (name: string) => {
        const disk = MemoryDisk.of(begun);
        const log = await openOn(disk);
        for (let index = 1; index <= 20; index++)
          await write(log, { ...term(1), entries: [entry(index, 1, `${name} of entry ${index}`)] });
        await close(log);
        return disk.files();
      };
      const begun = disk.files();
      files = await past('one past');
      others = await past('a second');
    });

    it('is refused when a whole segment was replaced', async () => {
      files.set(segment(1), others.get(segment(1)) ?? Buffer.alloc(0));
      expect(await rejection(openOn(MemoryDisk.of(files)))).to.be.instanceOf(StorageDamaged);
    });

    it('is refused when a single entry was replaced', async () => {
      const content = files.get(segment(1)) ?? Buffer.alloc(0);
      const other = others.get(segment(1)) ?? Buffer.alloc(0);
      const second = content.indexOf('one past of entry 2') - recordHeaderBytes;
      other.copy(content, segmentHeaderBytes, segmentHeaderBytes, second);
      expect(await rejection(openOn(MemoryDisk.of(files)))).to.be.instanceOf(StorageDamaged);
    });
  });
});

const segment = (number: number): string => `/node/generation-1/log/000000000${number}.log`;
