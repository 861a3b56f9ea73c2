// @live
import { once } from 'node:events';
import { BroadcastChannel } from 'node:worker_threads';
import { expect } from 'chai';
import type { TokenCall } from '../src/call.ts';
import { Pkcs11Failure } from '../src/failure.ts';
import { Library, type LibraryOptions } from '../src/library.ts';

const call = (pin: string): TokenCall => ({
  operation: 'describe',
  key: { library: 'fake', slot: 0, pin, keyLabel: 'k', mechanism: 'CKM_ECDSA' },
});

describe('the thread of a library', () => {
  let library: Library | undefined;
  const channels: BroadcastChannel[] = [];
  const open = (options: Partial<LibraryOptions> = {}): Library => {
    library = new Library({ path: 'fake', thread: new URL('./fake-thread.ts', import.meta.url), ...options });
    return library;
  };
  const channel = (name: string): BroadcastChannel => {
    const opened = new BroadcastChannel(name);
    channels.push(opened);
    return opened;
  };
  /** Resolves when the thread executes a call. */
  const held = (): Promise<unknown> => once(channel('held') as unknown as EventTarget, 'message');
  const release = (): void => channel('release').postMessage('go');
  const answerTo = async (of: Library, pin: string): Promise<string> => {
    try {
      return Buffer.from((await of.call(call(pin))) as Uint8Array).toString();
    } catch (error) {
      if (error instanceof Pkcs11Failure) return error.code;
      throw error;
    }
  };

  afterEach(() => {
    library?.close();
    for (const each of channels.splice(0)) each.close();
  });

  it("returns each caller's own result, in order", async () => {
    const fake = open();
    const order: string[] = [];
    const ask = async (pin: string): Promise<string> => {
      const answer = await answerTo(fake, pin);
      order.push(answer);
      return answer;
    };
    expect(await Promise.all(['a', 'b', 'refuse', 'c'].map(ask))).to.deep.equal(['a', 'b', 'not_possible', 'c']);
    expect(order).to.deep.equal(['a', 'b', 'not_possible', 'c']);
  });

  it('refuses calls at once while the queue is full', async () => {
    const fake = open({ waitingMax: 2 });
    const holding = held();
    const first = answerTo(fake, 'hold');
    await holding;
    const [second, third] = [answerTo(fake, 'b'), answerTo(fake, 'c')];
    expect(await answerTo(fake, 'd')).to.equal('busy');
    release();
    expect(await Promise.all([first, second, third])).to.deep.equal(['late', 'b', 'c']);
    expect(await answerTo(fake, 'e')).to.equal('e');
  });

  it('reports a timeout and sends the token no further call before it has answered', async () => {
    const fake = open({ deadlineMs: 100 });
    const holding = held();
    expect(await answerTo(fake, 'hold')).to.equal('timeout');
    expect(await answerTo(fake, 'behind')).to.equal('timeout');
    await holding;
    release();
    // Until the late answer arrives, other calls may time out too.
    let answer: string;
    do answer = await answerTo(fake, 'again');
    while (answer === 'timeout');
    expect(answer).to.equal('again');
  });

  for (const death of ['die', 'throw']) {
    it(`refuses all waiting calls when the thread ends (${death}), and starts a new one with the next call`, async () => {
      const fake = open();
      const answers = await Promise.all([answerTo(fake, death), answerTo(fake, 'behind')]);
      expect(answers).to.deep.equal(['token_failed', 'token_failed']);
      expect(await answerTo(fake, 'again')).to.equal('again');
    });
  }

  it('refuses all waiting calls when the node is sealed, and makes no call afterwards', async () => {
    const fake = open();
    const holding = held();
    const waiting = [answerTo(fake, 'hold'), answerTo(fake, 'behind')];
    await holding;
    fake.close();
    expect(await Promise.all(waiting)).to.deep.equal(['closed', 'closed']);
    expect(await answerTo(fake, 'later')).to.equal('closed');
  });
});
