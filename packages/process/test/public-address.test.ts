import { expect } from 'chai';
import { isPublicAddress } from '../src/public-address.ts';

describe('a public address', () => {
  for (const address of ['8.8.8.8', '1.1.1.1', '172.15.255.255', '172.32.0.1', '223.255.255.255', '2606:4700::1111', '2a00::1'])
    it(`is ${address}`, () => expect(isPublicAddress(address)).to.equal(true));

  for (const [address, what] of [
    ['127.0.0.1', 'this machine'],
    ['127.8.8.8', 'this machine'],
    ['0.0.0.0', 'this machine'],
    ['10.1.2.3', 'a private network'],
    ['172.16.0.1', 'a private network'],
    ['172.31.255.255', 'a private network'],
    ['192.168.0.1', 'a private network'],
    ['100.64.0.1', 'the network of a carrier'],
    ['100.100.100.200', "a cloud's metadata"],
    ['169.254.169.254', "a cloud's metadata"],
    ['168.63.129.16', "a cloud's host"],
    ['192.0.0.192', "a cloud's metadata"],
    ['198.18.0.1', 'benchmarks'],
    ['203.0.113.7', 'documentation'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'broadcast'],
    ['::', 'this machine'],
    ['::1', 'this machine'],
    ['::ffff:127.0.0.1', 'IPv4 in IPv6'],
    ['::ffff:8.8.8.8', 'IPv4 in IPv6'],
    ['::ffff:7f00:1', 'IPv4 in IPv6'],
    ['::127.0.0.1', 'IPv4 in IPv6'],
    ['64:ff9b::7f00:1', 'IPv4 behind a translator'],
    ['2002:7f00:1::', 'IPv4 in a tunnel'],
    ['2001:0:7f00:1::', 'IPv4 in a tunnel'],
    ['fe80::1', 'a link'],
    ['fe80::1%eth0', 'a link'],
    ['fd00:ec2::254', "a cloud's metadata"],
    ['fc00::1', 'a private network'],
    ['ff02::1', 'multicast'],
    ['2001:db8::1', 'documentation'],
    ['0177.0.0.1', 'no canonical address'],
    ['2130706433', 'no address'],
    ['localhost', 'no address'],
    ['', 'no address'],
  ])
    it(`is not ${address}: ${what}`, () => expect(isPublicAddress(address as string)).to.equal(false));
});
