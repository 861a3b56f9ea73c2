import { EventEmitter } from 'node:events';
import { StartError } from '@transitd/process';
import { expect } from 'chai';
import { bytesFrom, processSources, promptHidden, type Sources, type Terminal, textFrom } from '../../src/terminal/input.ts';

const sources: Sources = { stdin: async () => Buffer.from('typed\r\n'), file: (path) => Buffer.from(`of ${path}\n`) };

describe('inputs besides arguments', () => {
  it('come from standard input, a file or the argument; text loses its final newline, bytes keep it', async () => {
    expect(await textFrom('-', sources)).to.equal('typed');
    expect(await textFrom('@f', sources)).to.equal('of f');
    expect(await textFrom('plain', sources)).to.equal('plain');
    expect(String(await bytesFrom(undefined, sources))).to.equal('typed\r\n');
    expect(String(await bytesFrom('-', sources))).to.equal('typed\r\n');
    expect(String(await bytesFrom('@f', sources))).to.equal('of f\n');
    expect(String(await bytesFrom('plain', sources))).to.equal('plain');
  });

  it('names the file that cannot be read', () => {
    expect(() => processSources().file('/nowhere/x')).to.throw(StartError, '/nowhere/x cannot be read: ENOENT');
  });
});

describe('promptHidden', () => {
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
      // A fake with the members that the prompt uses.
      terminal: { input, output } as unknown as Terminal,
      type: (text: string | Buffer) => void events.emit('data', Buffer.from(text)),
      seen: () => ({ written, raw, reads, listeners: events.listenerCount('data') }),
    };
  }

  it('returns the typed line with corrections applied, without echo', async () => {
    const { terminal: at, type, seen } = terminal();
    const line = promptHidden('Share: ', 'use -', at);
    type('ab');
    type('x\u007fc');
    type('d\b\r');
    expect(await line).to.equal('abc');
    expect(seen()).to.deep.equal({ written: 'Share: \n', raw: [true, false], reads: false, listeners: 0 });
  });

  it('hides the line before it asks, and takes characters that arrive in parts', async () => {
    const { terminal: at, type, seen } = terminal();
    const { write } = at.output;
    at.output.write = (text: string) => {
      expect(seen().raw[0], 'raw mode').to.equal(true);
      return write(text);
    };
    const line = promptHidden('Share: ', 'use -', at);
    type(Buffer.from('ü').subarray(0, 1));
    type(Buffer.from('ü').subarray(1));
    type('\r');
    expect(await line).to.equal('ü');
  });

  for (const key of ['\u0003', '\u0004'])
    it(`fails on ${JSON.stringify(key)} and restores the terminal`, async () => {
      const { terminal: at, type, seen } = terminal();
      const line = promptHidden('Share: ', 'use -', at);
      type(`secret${key}`);
      expect(await line.catch((error: unknown) => error))
        .to.be.instanceOf(StartError)
        .with.property('message', 'interrupted');
      expect(seen().raw).to.deep.equal([true, false]);
    });

  it('fails at once without a terminal', async () => {
    const { terminal: at } = terminal({ isTTY: false });
    const attempt = (async () => promptHidden('Share: ', 'use -', at))();
    expect(await attempt.catch((error: unknown) => String(error))).to.include('no terminal to prompt on: use -');
  });
});
