import { withinCidrs } from './address.ts';

/** The unicast space of the Internet: IPv4, and the part of IPv6 that IANA assigns addresses from (RFC 4291 §2.4). */
const unicast = ['0.0.0.0/0', '2000::/3'];

/** Blocks in it that lead elsewhere: the special-purpose registries of IANA (RFC 6890), multicast, and reserved space. */
const special = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/3'],
  // The services of the host in Azure, at an address that looks public.
  '168.63.129.16/32',
  // Tunnels that embed an IPv4 address, benchmarks and documentation.
  ...['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'],
];

/**
 * Returns whether an address is one of the public Internet: not of this machine, a private network, a link or a cloud's metadata. False
 * for a text that is not an address, and for an IPv4 address inside an IPv6 address.
 */
export const isPublicAddress = (address: string): boolean =>
  !address.startsWith('::') && withinCidrs(unicast, address) && !withinCidrs(special, address);
