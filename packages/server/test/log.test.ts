import { RequestError } from '@transitd/http';
import { expect } from 'chai';
import { NodeLog } from '../src/log.ts';
import { LogStream } from '../src/log-stream.ts';
import { textLine, withVisibleEscapes } from '../src/log-text.ts';

const yes = async (): Promise<boolean> => true;

/** A log whose lines for stderr are collected. */
function collected(level: 'info' | 'warn' | 'silent' = 'info', checkMs?: number) {
  const written: string[] = [];
  const sink = { write: (line: string): void => void written.push(line) };
  const log = new NodeLog({ level, format: 'json' }, { sink, ...(checkMs !== undefined && { checkMs }) });
  return { log, messages: (): readonly string[] => written.map((line) => JSON.parse(line).msg) };
}

/** Reads the lines that are there. */
const linesOf = (stream: LogStream): readonly string[] =>
  String(stream.read() ?? '')
    .split('\n')
    .slice(0, -1);
const messagesOf = (stream: LogStream): readonly string[] => linesOf(stream).map((line) => JSON.parse(line).msg);

describe('the log of a node', () => {
  it('has no characters that control a terminal, whatever another machine said', () => {
    const written: string[] = [];
    const log = new NodeLog({ level: 'info', format: 'json' }, { sink: { write: (line: string) => void written.push(line) } });
    const [json, text] = (['json', 'standard'] as const).map((format) => log.follow({ level: 'info', format, mayContinue: yes }));
    const said = 'a\u001b[2J\u009b2J\u202e\u2028\u{e0001}\r\b\\u001b\n';
    log.logger.info({ [said]: said, nested: [said] }, said);
    log.close();
    for (const lines of [written.join(''), String(json?.read()), String(text?.read()), withVisibleEscapes(written.join(''))])
      expect(lines).not.to.match(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    expect(JSON.parse(written[0] ?? '')).to.include({ msg: said, [said]: said });
    expect(JSON.parse(withVisibleEscapes(written[0] ?? '')).msg).not.to.match(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
  });

  it('streams each line from its level on, and says first what it follows', () => {
    const { log, messages } = collected();
    const [all, faults] = [
      log.follow({ level: 'info', format: 'json', mayContinue: yes }),
      log.follow({ level: 'error', format: 'json', mayContinue: yes }),
    ];
    log.logger.info({ node: 'n1' }, 'started');
    log.logger.error('failed');
    expect(messagesOf(all)).to.deep.equal(['following the log', 'started', 'failed']);
    expect(messagesOf(faults)).to.deep.equal(['following the log', 'failed']);
    expect(messages()).to.deep.equal(['started', 'failed']);
    log.close();
  });

  it('streams lines below the level of stderr, which stay out of stderr, and stops making them afterwards', async () => {
    const { log, messages } = collected('warn');
    const stream = log.follow({ level: 'debug', format: 'json', mayContinue: yes });
    log.logger.debug('detail');
    log.logger.warn('odd');
    expect(messagesOf(stream)).to.deep.equal(['following the log', 'detail', 'odd']);
    expect(messages()).to.deep.equal(['odd']);
    const closed = new Promise((resolve) => stream.once('close', resolve));
    stream.destroy();
    await closed;
    expect(log.logger.level).to.equal('warn');
  });

  it('keeps the level of a reader when the level of stderr is reloaded', () => {
    const { log, messages } = collected('info');
    const stream = log.follow({ level: 'info', format: 'json', mayContinue: yes });
    log.level = 'silent';
    log.logger.info('unseen on stderr');
    expect(messagesOf(stream)).to.include('unseen on stderr');
    expect(messages()).to.deep.equal([]);
    log.close();
    expect(log.logger.level).to.equal('silent');
  });

  it('is followed by eight readers at most, and by none after it is closed', async () => {
    const { log } = collected();
    const follow = (): LogStream => log.follow({ level: 'info', format: 'json', mayContinue: yes });
    const [first, ...others] = Array.from({ length: 8 }, follow);
    expect(follow).to.throw(RequestError).with.property('code', 'overloaded');
    const closed = new Promise((resolve) => first?.once('close', resolve));
    first?.destroy();
    await closed;
    others.push(follow());
    log.close();
    for (const stream of others) expect(messagesOf(stream).at(-1)).to.equal('the node stops');
    expect(follow).to.throw(RequestError);
  });

  it('ends the stream of a reader that may no longer read it, and keeps other connections open with empty lines', async () => {
    const { log } = collected('info', 1);
    let may = true;
    const ending = log.follow({ level: 'info', format: 'json', mayContinue: async () => may });
    const staying = log.follow({ level: 'info', format: 'json', mayContinue: yes });
    expect(messagesOf(staying)).to.deep.equal(['following the log']);
    await new Promise((resolve) => staying.once('readable', resolve));
    expect(linesOf(staying)).to.deep.equal(['']);
    may = false;
    const text = [];
    for await (const chunk of ending) text.push(chunk);
    expect(text.join('')).to.include('no longer allows');
    log.close();
  });
});

describe('a stream of the log', () => {
  it('leaves lines out while nobody reads, within 256 KiB, and says how many', () => {
    const stream = new LogStream({ level: 'info', format: 'json' });
    const line = `${JSON.stringify({ level: 'info', msg: 'x'.repeat(1000) })}\n`;
    const count = 1000;
    for (let at = 0; at < count; at++) stream.add(line);
    expect(stream.readableLength).to.be.at.most(256 * 1024);
    const received = linesOf(stream).length;
    stream.add(line);
    const after = linesOf(stream).map((text) => JSON.parse(text));
    expect(after[0]).to.include({ level: 'warn', omitted: count - received });
    expect(received).to.be.below(count);
    expect(after).to.have.length(2);
  });

  it('reports what was left out before it ends', () => {
    const stream = new LogStream({ level: 'info', format: 'json' });
    const line = `${JSON.stringify({ level: 'info', msg: 'x'.repeat(100_000) })}\n`;
    for (let at = 0; at < 4; at++) stream.add(line);
    stream.end('the node stops');
    const last = linesOf(stream).map((text) => JSON.parse(text));
    expect(last.at(-2)).to.include({ omitted: 2 });
    expect(last.at(-1)).to.include({ msg: 'the node stops' });
  });
});

describe('a line of the log as text', () => {
  const text = (fields: object): string => textLine(`${JSON.stringify(fields)}\n`);

  it('has time, level, message and fields', () => {
    expect(text({ level: 'info', time: 'T', version: '0.1.0', node: 'n1', sealed: false, msg: 'started' })).to.equal(
      'T [INFO]  started: version=0.1.0 node=n1 sealed=false\n',
    );
    expect(text({ level: 'error', time: 'T', msg: 'failed' })).to.equal('T [ERROR] failed\n');
  });

  it('stays one line without codes for the terminal, whatever a value contains', () => {
    const odd = 'a\nT [ERROR] forged \u001b[2J\u2028\u0085"';
    const line = text({ level: 'warn', time: 'T', reason: odd, msg: odd });
    expect(line.slice(0, -1)).not.to.match(/[\p{Cc}\p{Zl}\p{Zp}]/u);
    expect(line.endsWith('\n')).to.equal(true);
    expect(line).to.include('reason="a\\nT [ERROR] forged');
  });
});
