import { until } from '../../../process/test/until.ts';
import { keysBelow } from '../../src/copy/keys.ts';
import type { Etcd } from '../../src/etcd.ts';
import { StateFeed } from '../../src/replica/state-feed.ts';
import { FakeEtcd } from '../fake/fake-etcd.ts';
import { FakeServer } from '../fake/fake-server.ts';

/** Calls `onReading` with its number at each reading of the state: readings are the only ranges with a limit. */
class ObservedEtcd extends FakeEtcd {
  readings = 0;
  onReading: (number: number) => void = () => undefined;

  override async range(request: Parameters<Etcd['range']>[0]): ReturnType<Etcd['range']> {
    const page = await super.range(request);
    if (request.limit !== undefined) this.onReading(++this.readings);
    return page;
  }
}

describe('the feed of the state', () => {
  it('reads the state once more if a suspicion arrives while it is being read', async () => {
    const etcd = new ObservedEtcd(new FakeServer());
    const options = { keys: keysBelow('test'), retryMs: 1, idleMs: 60_000, onFault: () => undefined };
    const feed = await StateFeed.open({ etcd, ...options });
    etcd.onReading = (number) => {
      if (number === 2) feed.suspect();
    };
    feed.suspect();
    await until(() => etcd.readings === 3);
    await feed.close();
  });
});
