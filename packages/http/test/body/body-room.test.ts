import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import fc from 'fast-check';
import { BodyMemory, bodyMemoryLimits, valuesBytesOf } from '../../src/body/body-memory.ts';
import { type BodyCaller, BodyRoom } from '../../src/body/body-room.ts';

const response = () => new EventEmitter() as ServerResponse;
const turn = () => new Promise((resolve) => setImmediate(resolve));
const caller = (tokenId: string, address = tokenId): BodyCaller => ({ tokenId, address });
const roomOf = (bytesMax: number, shareBytesMax = bytesMax) =>
  new BodyRoom({ limit: { own: bytesMax, ownPerCaller: shareBytesMax }, waitingMax: 100, waitMsMax: 3_600_000 });

describe('a body room', () => {
  it('limits a token and an address to their share, but always admits one body', async () => {
    const room = roomOf(100, 25);
    expect(room.reserve(response(), caller('t', 'a'), 60)).to.equal(undefined);
    let entered = 0;
    for (const same of [caller('t', 'b'), caller('u', 'a')]) void room.reserve(response(), same, 10)?.then(() => (entered += 1));
    expect([room.held, room.waiting]).to.deep.equal([60, 2]);
    await turn();
    expect(entered, 'they wait for their own share').to.equal(0);
    const other = room.reserve(response(), caller('v', 'c'), 40);
    await other;
    expect(room.held, 'and keep nobody else out').to.equal(100);
    room.release(caller('t', 'a'), 60);
    await turn();
    expect([entered, room.held, room.waiting]).to.deep.equal([2, 60, 0]);
  });

  it('does not queue a body whose caller has already disconnected', async () => {
    const room = roomOf(100);
    void room.reserve(response(), caller('a'), 60);
    const gone = Object.assign(response(), { closed: true });
    const refusal: unknown = await room.reserve(gone, caller('b'), 80)?.catch((error: unknown) => error);
    expect(refusal).to.have.property('code', 'request_aborted');
    expect([room.held, room.waiting, room.refused]).to.deep.equal([60, 0, 0]);
  });

  it('does not let small bodies overtake a large one', async () => {
    const room = roomOf(100);
    void room.reserve(response(), caller('a'), 60);
    const order: string[] = [];
    void room.reserve(response(), caller('b'), 80)?.then(() => order.push('large'));
    void room.reserve(response(), caller('c'), 10)?.then(() => order.push('small'));
    await turn();
    expect(order).to.deep.equal([]);
    room.release(caller('a'), 60);
    await turn();
    expect(order).to.deep.equal(['large', 'small']);
  });

  it('never exceeds its memory, and admits every body if others keep ending', async () => {
    const body = fc.record({
      who: fc.constantFrom('a', 'b', 'c'),
      from: fc.constantFrom('x', 'y'),
      bytes: fc.integer({ min: 1, max: 100 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(body, { maxLength: 40 }), fc.array(fc.nat(50)), async (bodies, endings) => {
        const room = roomOf(100, 25);
        const inside: (() => void)[] = [];
        let entered = 0;
        const end = async (at: number) => {
          inside.splice(at % Math.max(1, inside.length), 1)[0]?.();
          expect(room.held).to.be.within(0, 100);
          await turn();
        };
        for (const [at, { who, from, bytes }] of bodies.entries()) {
          const begin = () => {
            entered += 1;
            inside.push(() => room.release(caller(who, from), bytes));
          };
          const waits = room.reserve(response(), caller(who, from), bytes);
          if (waits === undefined) begin();
          else void waits.then(begin);
          await turn();
          if (endings[at] !== undefined) await end(endings[at]);
        }
        while (inside.length > 0) await end(0);
        expect([entered, room.held, room.waiting]).to.deep.equal([bodies.length, 0, 0]);
      }),
    );
  });
});

describe('the body memory', () => {
  const counted = (bytes: number) => bytes - 65_536;
  const mib = 1024 * 1024;

  it('reserves a body of unknown length in two steps, and releases the rest', () => {
    const memory = new BodyMemory(bodyMemoryLimits(64 * mib), 10);
    const res = response();
    const body = memory.reservation(res, caller('t'));
    expect(body.grow(65_536, undefined, 32 * mib)).to.equal(undefined);
    expect(memory.held).to.equal(0);
    body.grow(65_537, undefined, 32 * mib);
    expect(memory.held).to.equal(counted(mib));
    body.grow(mib, undefined, 32 * mib);
    expect(memory.held).to.equal(counted(mib));
    body.grow(mib + 1, undefined, 32 * mib);
    expect(memory.held).to.equal(counted(32 * mib));
    body.complete(2 * mib);
    expect(memory.held).to.equal(counted(2 * mib));
    res.emit('close');
    expect(memory.held).to.equal(0);
  });

  it('eventually admits all bodies of unknown length, however many grow at once', async () => {
    const memory = new BodyMemory(bodyMemoryLimits(64 * mib), 100);
    let done = 0;
    await Promise.all(
      Array.from({ length: 40 }, async (_, n) => {
        const res = response();
        const body = memory.reservation(res, caller(`t${n % 7}`));
        await body.grow(70_000, undefined, 32 * mib);
        await turn();
        await body.grow(2 * mib, undefined, 32 * mib);
        await turn();
        body.complete(3 * mib);
        await turn();
        res.emit('close');
        done += 1;
      }),
    );
    expect([done, memory.held, memory.waiting, memory.refused]).to.deep.equal([40, 0, 0, 0]);
  });

  it('limits the values of bodies that are parsed at the same time, by caller and together', async () => {
    const memory = new BodyMemory(bodyMemoryLimits(256 * mib), 10);
    const largest = 64_000_000; // the most values that a body may have
    expect(memory.parse(response(), caller('a'), largest)).to.equal(undefined);
    let entered = 0;
    void memory.parse(response(), caller('a'), 16 * mib)?.then(() => (entered += 1));
    expect(memory.tryParse(caller('b'), mib), 'nobody overtakes a body that waits').to.equal(false);
    await turn();
    expect([entered, memory.waiting, memory.held]).to.deep.equal([0, 1, 0]);
    memory.parsed(caller('a'), largest);
    await turn();
    expect([entered, memory.waiting]).to.deep.equal([1, 0]);
    for (const who of ['b', 'c', 'd']) expect(memory.tryParse(caller(who), largest)).to.equal(true);
    expect(memory.tryParse(caller('e'), largest), 'the memory is taken').to.equal(false);
    memory.parsed(caller('a'), 16 * mib);
    expect(memory.tryParse(caller('e'), largest)).to.equal(true);
  });

  it('reserves nothing for the values of a body with few of them, however long it is', () => {
    const bytesFor = (text: string): number => valuesBytesOf(Buffer.from(text));
    expect(bytesFor(`{"plaintext":"${'A'.repeat(mib)}"}`)).to.equal(0);
    expect(bytesFor(`{"batch_input":[${'{"input":""},'.repeat(800)}{}]}`)).to.equal(0);
    expect(bytesFor(`{"batch_input":[${'{"input":""},'.repeat(1_500)}{}]}`)).to.be.within(64 * 3_000, 64 * 3_010);
  });

  it('reserves memory for a text that is parsed too, by its length', () => {
    const bytesFor = (length: number): number =>
      valuesBytesOf(Buffer.from(`{"backup":"${'A'.repeat(length)}"}`), { parsesText: true });
    expect(bytesFor(1000)).to.equal(0);
    expect(bytesFor(100_000)).to.be.within(64 * 50_000, 64 * 50_010);
    expect(bytesFor(10 * mib)).to.equal(64_000_000);
  });

  it('always has memory for the values of one body, however small it is', () => {
    const memory = new BodyMemory(bodyMemoryLimits(mib), 10);
    expect(memory.tryParse(caller('a'), 64_000_000)).to.equal(true);
  });

  it('releases the memory of a body exactly once if the body ends while it waits for more', async () => {
    const memory = new BodyMemory(bodyMemoryLimits(32 * mib), 10);
    const first = response();
    memory.reservation(first, caller('a')).grow(70_000, 32 * mib, 32 * mib);
    const second = response();
    const body = memory.reservation(second, caller('b'));
    body.grow(70_000, undefined, 32 * mib);
    const waits = body.grow(2 * mib, undefined, 32 * mib);
    body.complete(0);
    expect(memory.held).to.equal(counted(32 * mib));
    first.emit('close');
    await waits;
    expect(memory.held).to.equal(counted(32 * mib));
    second.emit('close');
    expect([memory.held, memory.waiting]).to.deep.equal([0, 0]);
  });

  it('holds nothing for a caller that disconnects just as its body is admitted', async () => {
    const memory = new BodyMemory(bodyMemoryLimits(mib), 10);
    const first = response();
    memory.reservation(first, caller('a')).grow(70_000, mib, mib);
    const second = response();
    const waits = memory.reservation(second, caller('b')).grow(70_000, mib, mib);
    first.emit('close');
    Object.assign(second, { destroyed: true });
    second.emit('close');
    await waits?.catch(() => undefined);
    expect([memory.held, memory.waiting]).to.deep.equal([0, 0]);
  });
});
