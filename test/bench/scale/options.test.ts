import { expect } from 'chai';
import { isLearner, parseOptions } from '../../../bench/scale/options.ts';

describe('the options of bench/scale.ts', () => {
  it('are 3 to 33 nodes with Raft by default, of which three are voters', () => {
    const { nodes, etcd, requests } = parseOptions([]);
    expect({ nodes, etcd, requests }).to.deep.equal({ nodes: [3, 5, 9, 17, 33], etcd: undefined, requests: 2000 });
    expect([3, 4].map(isLearner)).to.deep.equal([false, true]);
  });

  it('name an etcd, with which two nodes are enough', () => {
    const { nodes, etcd } = parseOptions(['--etcd', 'http://127.0.0.1:2379', '--nodes', '2,16']);
    expect({ nodes, etcd }).to.deep.equal({ nodes: [2, 16], etcd: 'http://127.0.0.1:2379' });
  });

  for (const [args, error] of [
    [['--nodes', '2,3'], '--nodes must be ascending integers from 3'],
    [['--nodes', '5,5'], '--nodes must be ascending integers from 3'],
    [['--nodes', '3,x'], '--nodes must be ascending integers from 3'],
    [['--etcd', 'here'], '--etcd: here is not a URL'],
    [['--requests', '0'], "option '--requests <n>' argument '0' is invalid. It must be a positive number."],
    [['--rest', '0'], "option '--rest <n>' argument '0' is invalid. It must be a positive number."],
  ] as const)
    it(`refuse ${args.join(' ')}`, () => {
      expect(() => parseOptions(args)).to.throw(error);
    });
});
