import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import { type LinkMode, LinkProxy } from './link-proxy.ts';
import { scenarioMs } from './scenario.ts';
import { until } from './until.ts';

const one = '127.0.0.21';
const two = '127.0.0.22';

/** A socket whose received text and end a test can await. */
class Line {
  readonly socket: Socket;
  heard = '';
  ended: 'open' | 'end' | 'reset' = 'open';

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('utf8').on('data', (text: string) => {
      this.heard += text;
    });
    socket.on('end', () => {
      this.ended = 'end';
    });
    socket.on('error', () => {
      this.ended = 'reset';
    });
  }

  hears(text: string): Promise<true> {
    return until(`"${text}" arrives`, () => this.heard.includes(text), {
      explain: () => `${this.heard} ${this.ended}`,
    });
  }

  ends(how: 'end' | 'reset'): Promise<true> {
    return until(how, () => this.ended === how, { explain: () => `${this.heard} ${this.ended}` });
  }
}

/** A target that records every line it receives. */
class Target {
  readonly lines: Line[] = [];
  readonly server: Server;

  private constructor() {
    this.server = createServer((socket) => this.lines.push(new Line(socket)));
  }

  static async listen(): Promise<Target> {
    const target = new Target();
    await new Promise<void>((resolve) => target.server.listen({ host: '127.0.0.1', port: 0 }, resolve));
    return target;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  close(): void {
    for (const { socket } of this.lines) socket.destroy();
    this.server.close();
  }
}

describe('the proxy in front of a cluster port', function () {
  this.timeout(scenarioMs);
  let target: Target;
  let proxy: LinkProxy;
  const callers: Line[] = [];

  beforeEach(async () => {
    target = await Target.listen();
    proxy = await LinkProxy.listen({ host: '127.0.0.1', port: target.port }, [one, two]);
  });

  afterEach(async () => {
    for (const { socket } of callers.splice(0)) socket.destroy();
    target.close();
    await proxy.close();
  });

  const call = (localAddress: string): Line => {
    const line = new Line(connect({ ...proxy.address, localAddress }));
    callers.push(line);
    return line;
  };

  /** Opens a working connection and returns both ends. */
  const connected = async (localAddress: string): Promise<{ caller: Line; called: Line }> => {
    const caller = call(localAddress);
    const hello = `hello ${localAddress} ${target.lines.length};`;
    caller.socket.write(hello);
    const called = await until('the call arrives', () => target.lines.find(({ heard }) => heard.includes(hello)));
    called.socket.write('welcome;');
    await caller.hears('welcome;');
    return { caller, called };
  };

  it('passes bytes and ends both ways while a link is open', async () => {
    const { caller, called } = await connected(one);
    caller.socket.end('last words');
    await called.hears('last words');
    await called.ends('end');
    await caller.ends('end');
    await until('the connection is forgotten', () => proxy.connectionsFrom(one) === 0);
  });

  it('passes more than any buffer holds, in order', async () => {
    const { caller, called } = await connected(one);
    const text = Array.from({ length: 400_000 }, (_, i) => `${i};`).join('');
    caller.socket.end(text);
    await called.ends('end');
    expect(called.heard.endsWith(text)).to.equal(true);
  });

  it('identifies callers by their source address', async () => {
    proxy.setMode(one, 'cut');
    await call(one).ends('reset');
    await connected(two);
  });

  it('refuses an unknown address, and names it', async () => {
    await call('127.0.0.99').ends('reset');
    expect([...proxy.strangers]).to.deep.equal(['127.0.0.99']);
  });

  it('resets both ends of open connections when a link is cut, and accepts new ones when it is restored', async () => {
    const { caller, called } = await connected(one);
    proxy.setMode(one, 'cut');
    await Promise.all([caller.ends('reset'), called.ends('reset')]);
    proxy.setMode(one, 'open');
    await connected(one);
  });

  it('drops bytes silently over a black hole, and resets connections that lost bytes when the link opens', async () => {
    const { caller, called } = await connected(one);
    const other = await connected(two);
    proxy.setMode(one, 'blackhole');
    caller.socket.write('lost');
    called.socket.write('lost too');
    const late = call(one);
    late.socket.write('hello');
    // Traffic over another link shows that there was enough time for the lost bytes.
    other.caller.socket.write('passes');
    await other.called.hears('passes');
    expect([caller.ended, called.ended, late.ended]).to.deep.equal(['open', 'open', 'open']);
    proxy.setMode(one, 'open');
    await Promise.all([caller.ends('reset'), called.ends('reset'), late.ends('reset')]);
    expect(caller.heard + called.heard + late.heard).not.to.include('lost');
    await connected(one);
  });

  it('does not report through a black hole that the other end has died', async () => {
    const { caller, called } = await connected(one);
    proxy.setMode(one, 'blackhole');
    called.socket.resetAndDestroy();
    const other = await connected(two);
    other.caller.socket.end();
    await other.called.ends('end');
    expect(caller.ended).to.equal('open');
    proxy.setMode(one, 'open');
    await caller.ends('reset');
  });

  it('keeps an idle connection through a black hole, because it lost nothing', async () => {
    const { caller, called } = await connected(one);
    proxy.setMode(one, 'blackhole');
    proxy.setMode(one, 'open');
    caller.socket.write('still here');
    await called.hears('still here');
  });

  for (const { mode, lost, arrives } of [
    { mode: 'swallow-requests', lost: 'request', arrives: 'answer' },
    { mode: 'swallow-answers', lost: 'answer', arrives: 'request' },
  ] as const) {
    it(`loses each ${lost} and passes each ${arrives} in the mode ${mode}`, async () => {
      const { caller, called } = await connected(one);
      proxy.setMode(one, mode);
      caller.socket.write('request');
      called.socket.write('answer');
      await (arrives === 'answer' ? caller : called).hears(arrives);
      expect((arrives === 'answer' ? called : caller).heard).not.to.include(lost);
      proxy.setMode(one, 'open');
      await Promise.all([caller.ends('reset'), called.ends('reset')]);
    });
  }

  it('holds bytes and delivers them in order when the link opens', async () => {
    const { caller, called } = await connected(one);
    proxy.setMode(one, 'hold');
    caller.socket.write('first;');
    const other = await connected(two);
    caller.socket.write('second;');
    expect(called.heard).not.to.include('first');
    other.caller.socket.destroy();
    proxy.setMode(one, 'open');
    await called.hears('first;second;');
  });

  it('delays bytes and keeps their order when the delay ends', async () => {
    const { caller, called } = await connected(one);
    const startMs = performance.now();
    proxy.setMode(one, { delayMs: 100 });
    caller.socket.write('first;');
    await called.hears('first;');
    // A lower bound holds on a slow machine too.
    expect(performance.now() - startMs).to.be.at.least(95);
    proxy.setMode(one, { delayMs: 3_600_000 });
    caller.socket.write('second;');
    called.socket.write('seen');
    proxy.setMode(one, 'open');
    caller.socket.write('third;');
    await called.hears('second;third;');
    await caller.hears('seen');
  });

  it('holds bytes up by a retransmission if a segment is lost, and keeps all of them in order', async () => {
    const { caller, called } = await connected(one);
    const startMs = performance.now();
    proxy.setMode(one, { delayMs: 20, loss: 1 });
    caller.socket.write('first;');
    await called.hears('first;');
    // The way there, the way back, the timer, and the way there again; a lower bound holds on a slow machine too.
    expect(performance.now() - startMs).to.be.at.least(255);
    proxy.setMode(one, { delayMs: 1, loss: 0.5 });
    const text = Array.from({ length: 20_000 }, (_, i) => `${i};`).join('');
    caller.socket.end(text);
    await called.ends('end');
    expect(called.heard.endsWith(text)).to.equal(true);
  });

  it('holds delayed bytes when it begins to hold', async () => {
    const { caller, called } = await connected(one);
    let tries = 0;
    await until('the proxy begins to hold before the delay has ended', async () => {
      proxy.setMode(one, { delayMs: 1500 });
      const startMs = performance.now();
      caller.socket.write(`late ${++tries};`);
      await until('the proxy has it', () => caller.socket.bytesWritten > 0 && caller.socket.writableLength === 0);
      proxy.setMode(one, 'hold');
      if (performance.now() - startMs < 1500) return true;
      proxy.setMode(one, 'open');
      await called.hears(`late ${tries};`);
      return false;
    });
    // A line that is sent later on another link arrives first.
    const other = await connected(two);
    proxy.setMode(two, { delayMs: 2000 });
    other.caller.socket.write('passes;');
    await other.called.hears('passes;');
    expect(called.heard).not.to.include(`late ${tries};`);
    proxy.setMode(one, 'open');
    await called.hears(`late ${tries};`);
  });

  it('resets the caller if nobody listens at the target', async () => {
    target.close();
    await call(one).ends('reset');
  });

  it('reports the mode of each link', () => {
    const modes: readonly LinkMode[] = ['cut', 'hold', 'blackhole', 'open'];
    for (const mode of modes) {
      proxy.setMode(one, mode);
      expect([proxy.mode(one), proxy.mode(two)]).to.deep.equal([mode, 'open']);
    }
  });
});
