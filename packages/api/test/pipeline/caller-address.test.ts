// @live
import type { IncomingMessage } from 'node:http';
import { expect } from 'chai';
import { callerAddress } from '../../src/pipeline/caller-address.ts';

const proxies = ['10.0.0.0/8'];

describe("the caller's address", () => {
  for (const { from, forwarded, expected, because } of [
    { from: '192.0.2.1', forwarded: undefined, expected: '192.0.2.1', because: 'nothing else is known' },
    { from: '::ffff:192.0.2.1', forwarded: undefined, expected: '192.0.2.1', because: 'it is an IPv4 address' },
    { from: '192.0.2.1', forwarded: '198.51.100.7', expected: '192.0.2.1', because: 'only a trusted proxy is believed' },
    { from: '10.0.0.1', forwarded: '198.51.100.7', expected: '198.51.100.7', because: 'the proxy says so' },
    { from: '10.0.0.1', forwarded: '203.0.113.9, 198.51.100.7', expected: '198.51.100.7', because: 'the first one is hearsay' },
    { from: '10.0.0.1', forwarded: '198.51.100.7, 10.0.0.2', expected: '198.51.100.7', because: 'there are two proxies' },
    { from: '10.0.0.1', forwarded: '10.0.0.3,10.0.0.2', expected: '10.0.0.3', because: 'a proxy itself asks' },
    { from: '10.0.0.1', forwarded: undefined, expected: '10.0.0.1', because: 'a proxy itself asks' },
    {
      from: '10.0.0.1',
      forwarded: 'unknown',
      expected: 'unknown',
      because: 'a string that is not an address is in no CIDR block',
    },
  ])
    it(`from ${from} with ${forwarded ?? 'nothing'} forwarded is ${expected}: ${because}`, () => {
      const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
      const request = { socket: { remoteAddress: from }, headers } as unknown as IncomingMessage;
      expect(callerAddress(request, proxies)).to.equal(expected);
    });

  for (const [expected, ...forms] of [
    ['198.51.100.7', '198.51.100.7', '198.51.100.7:4711', '::ffff:198.51.100.7', '[::ffff:198.51.100.7]:443', '::FFFF:c633:6407'],
    ['2001:db8::1', '2001:db8::1', '2001:DB8:0:0:0:0:0:1', '[2001:db8::1]', '[2001:db8::1]:65535', '2001:db8::1%eth0'],
    ['10.0.0.9', '10.0.0.9:80', '[::ffff:10.0.0.9]:80'],
    ['unknown', 'unknown'],
    ['198.51.100.7:x', '198.51.100.7:x'],
    ['198.51.100.700:1', '198.51.100.700:1'],
    ['[x]:1', '[x]:1'],
  ] as const) {
    for (const form of forms) {
      it(`is ${expected} when a trusted proxy writes ${form}`, () => {
        const request = { socket: { remoteAddress: '10.0.0.1' }, headers: { 'x-forwarded-for': form } };
        expect(callerAddress(request as unknown as IncomingMessage, proxies)).to.equal(expected);
      });
    }
  }

  it('is the remote address if no proxy is trusted', () => {
    const request = { socket: { remoteAddress: '10.0.0.1' }, headers: { 'x-forwarded-for': '192.0.2.1' } };
    expect(callerAddress(request as unknown as IncomingMessage, [])).to.equal('10.0.0.1');
  });
});
