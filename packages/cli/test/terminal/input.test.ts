import { EventEmitter } from 'node:events';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { bytesFrom, hiddenLine, processSources, type Sources, type Terminal, textFrom } from '../../src/terminal/input.ts';

const sources: Sources = { stdin: async () => Buffer.from('typed\r\n'), file: (path) => Buffer.from(`of ${path}\n`) };

describe('what is not on the command line', () => {
  it('comes from standard input, a file, or stands there as it is; a text without its line end, bytes with it', async () => {
    expect(await textFrom('-', sources)).to.equal('typed');
    expect(await textFrom('@f', sources)).to.equal('of f');
    expect(await textFrom('plain', sources)).to.equal('plain');
    expect(String(await bytesFrom(undefined, sources))).to.equal('typed\r\n');
    expect(String(await bytesFrom('-', sources))).to.equal('typed\r\n');
    expect(String(await bytesFrom('@f', sources))).to.equal('of f\n');
    expect(String(await bytesFrom('plain', sources))).to.equal('plain');
  });

  it('says which file cannot be read', () => {
    expect(() => processSources().file('/nowhere/x')).to.throw(StartError, '/nowhere/x cannot be read: ENOENT');
  });
});

describe('a hidden line', () => {
  function terminal({ isTTY = true } = {}) {
    const events = new EventEmitter();
    const raw: boolean[] = [];
    let written = '';
    let reads = false;
    const input = Object.assign(events, {
      isTTY,
      setRawMode: (on: boolean) => void raw.push(on),
      resume: () => {
        reads = true;
      },
      pause: () => {
        reads = false;
      },
    });
    const output = {
      write: (text: string) => {
        written += text;
      },
    };
    return {
      // A stand-in with what is used of a terminal.
      terminal: { input, output } as unknown as Terminal,
      type: (text: string) => void events.emit('data', Buffer.from(text)),
      seen: () => ({ written, raw, reads, listeners: events.listenerCount('data') }),
    };
  }

  it('is what was typed up to the end of the line, corrected, and nothing of it is shown', async () => {
    const { terminal: at, type, seen } = terminal();
    const line = hiddenLine('Share: ', 'give -', at);
    type('ab');
    type('x\u007fc');
    type('d\b\r');
    expect(await line).to.equal('abc');
    expect(seen()).to.deep.equal({ written: 'Share: \n', raw: [true, false], reads: false, listeners: 0 });
  });

  for (const key of ['\u0003', '\u0004'])
    it(`can be broken off by ${JSON.stringify(key)}, which gives the terminal back`, async () => {
      const { terminal: at, type, seen } = terminal();
      const line = hiddenLine('Share: ', 'give -', at);
      type(`secret${key}`);
      expect(await line.catch((error: unknown) => error))
        .to.be.instanceOf(StartError)
        .with.property('message', 'broken off');
      expect(seen().raw).to.deep.equal([true, false]);
    });

  it('is not waited for without a terminal', async () => {
    const { terminal: at } = terminal({ isTTY: false });
    const attempt = (async () => hiddenLine('Share: ', 'give -', at))();
    expect(await attempt.catch((error: unknown) => String(error))).to.include('there is no terminal to ask at: give -');
  });
});
