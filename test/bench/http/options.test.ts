import { expect } from 'chai';
import { parseOptions } from '../../../bench/http/options.ts';

describe('options of the HTTP benchmark', () => {
  it('starts a node, with 16 connections and 3 rounds of 3 s, unless the command line says otherwise', () => {
    const { servers, rows, connections, seconds, rounds, requests } = parseOptions([]);
    expect({ servers, rows, connections, seconds, rounds, requests }).to.deep.equal({
      servers: [],
      rows: [],
      connections: 16,
      seconds: 3,
      rounds: 3,
      requests: Number.POSITIVE_INFINITY,
    });
  });

  it('gives the first token and process to --ours, and the second to --peer', () => {
    const args = '--peer http://127.0.0.1:2/ --token a --token b --ours https://[::1]:1 --pid 10 --pid 20'.split(' ');
    expect(parseOptions(args).servers).to.deep.equal([
      { name: 'ours', url: 'https://[::1]:1', token: 'a', pids: [10] },
      { name: 'peer', url: 'http://127.0.0.1:2', token: 'b', pids: [20] },
    ]);
  });

  it('gives the only token to the peer when the benchmark starts our node', () => {
    const [peer, ...others] = parseOptions(['--peer', 'http://127.0.0.1:2', '--token', 'b', '--tls']).servers;
    expect(peer).to.deep.equal({ name: 'peer', url: 'http://127.0.0.1:2', token: 'b', pids: [] });
    expect(others).to.deep.equal([]);
  });

  it('has at most one generator thread per connection', () => {
    expect(parseOptions(['--connections', '2', '--threads', '4']).threads).to.equal(2);
  });

  for (const { args, names } of [
    { args: '--ours http://127.0.0.1:1', names: '--token' },
    { args: '--token a', names: '--token' },
    { args: '--pid 1', names: '--pid' },
    { args: '--ours ftp://127.0.0.1:1 --token a', names: '--ours' },
    { args: '--ours http://127.0.0.1:1 --token a --audit', names: '--audit' },
    { args: '--ours http://127.0.0.1:1 --token a --nodes 3', names: '--nodes' },
    { args: '--nodes 0', names: '--nodes' },
    { args: '--rounds 1.5', names: '--rounds' },
    { args: '--connections 0', names: '--connections' },
    { args: '--seconds long', names: '--seconds' },
    { args: '--second 3', names: '--second' },
  ]) {
    it(`refuses ${args} and names ${names}`, () => {
      expect(() => parseOptions(args.split(' '))).to.throw(names);
    });
  }
});
