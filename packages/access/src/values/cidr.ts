import { isCidr } from '@transitd/process';
import { invalidRequest } from './errors.ts';

/** Maximum number of blocks in one record. */
const cidrsMax = 64;

/**
 * Returns the list if each item is an address block, such as `10.0.0.0/8` or `2001:db8::/32`, or a single address.
 * @throws AccessError `invalid_request`
 */
export function checkCidrs(cidrs: readonly string[]): readonly string[] {
  if (cidrs.length > cidrsMax) throw invalidRequest(`at most ${cidrsMax} address blocks are allowed`);
  if (!cidrs.every(isCidr))
    throw invalidRequest('an address block has the form 10.0.0.0/8 or 2001:db8::/32, or is a single address');
  return cidrs;
}
