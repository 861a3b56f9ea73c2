import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import type { ClusterView } from '../../src/reports/node-report.ts';
import { ReportStreams, type ReportStreamTimes } from '../../src/reports/report-streams.ts';

describe('streams of reports', () => {
  const opened: Readable[] = [];
  afterEach(() => {
    for (const stream of opened.splice(0)) stream.destroy();
  });

  /** Streams whose views are counted. */
  function streamsOf(times: ReportStreamTimes = {}) {
    const asked = { views: 0 };
    const view = async (): Promise<ClusterView> => ({ asked: `n${++asked.views}`, nodes: [] });
    const streams = new ReportStreams({ view }, { everyMs: 1, ...times });
    const follow = (caller = 'ann', mayContinue = async () => true): Readable => {
      const stream = streams.follow({ caller, mayContinue });
      opened.push(stream);
      return stream;
    };
    return { streams, follow, asked };
  }
  /** Waits for the next line. */
  const line = async (stream: Readable): Promise<object> => {
    const [chunk] = await once(stream, 'data');
    stream.pause();
    return JSON.parse(String(chunk));
  };

  it('send a view at once and another one after each interval', async () => {
    const { follow } = streamsOf();
    const stream = follow();
    for (const asked of ['n1', 'n2', 'n3']) {
      stream.resume();
      expect(await line(stream)).to.deep.equal({ asked, nodes: [] });
    }
  });

  it('end before the next line if the caller has lost its rights, or if that cannot be found out', async () => {
    const { follow } = streamsOf();
    for (const refuse of [() => false, () => Promise.reject(new Error('no leader'))]) {
      let answers = 0;
      const stream = follow('ann', async () => (++answers < 3 ? true : refuse()));
      expect((await text(stream)).trim().split('\n')).to.have.length(2);
    }
  });

  it('ask no member while the reader is slow', async () => {
    const { follow, asked } = streamsOf();
    const [slow, quick] = [follow('slow'), follow('quick')];
    await line(slow);
    const before = asked.views;
    let lines = 0;
    quick.on('data', () => {
      lines += 1;
    });
    while (lines < 20) await once(quick, 'data');
    expect(asked.views - before).to.be.within(lines - 1, lines + 3); // at most one waits for each reader
  });

  it('disconnect a reader that takes no line for long, which frees its place, and no other one', async () => {
    const { follow } = streamsOf({ stalledMs: 20 });
    const quick = follow('ann').resume();
    const [stalled] = [1, 2, 3].map(() => follow('ann'));
    await line(stalled as Readable);
    await once(stalled as Readable, 'close');
    expect(quick.destroyed).to.equal(false);
    follow('ann');
  });

  it('are at most four for one caller, and a place is free again when a reader leaves, even one that never read', async () => {
    const { follow } = streamsOf();
    const own = Array.from({ length: 4 }, () => follow('ann'));
    expect(() => follow('ann')).to.throw('this token follows the reports of this node 4 times already');
    follow('ben');
    own[0]?.destroy();
    await once(own[0] as Readable, 'close');
    follow('ann');
    expect(() => follow('ann'))
      .to.throw()
      .with.property('code', 'busy');
  });

  it('are at most 32 for all callers', () => {
    const { follow } = streamsOf();
    for (let n = 0; n < 32; n++) follow(`caller ${n}`);
    expect(() => follow('another')).to.throw('this node sends its reports to 32 readers already');
  });

  it('end when the node stops, which refuses further ones', async () => {
    const { streams, follow } = streamsOf({ everyMs: 3_600_000 });
    const [waiting, unread] = [follow(), follow()];
    await line(waiting);
    streams.close();
    expect(await text(waiting)).to.equal('');
    expect(await text(unread)).to.equal('');
    expect(() => follow()).to.throw('the node stops');
  });
});
