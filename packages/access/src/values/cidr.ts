import { isCidr } from '@transitd/process';
import { invalidRequest } from './errors.ts';

/** Maximum number of blocks in one record. */
const cidrsMax = 64;

/**
 * Returns the list if each item is an address block, such as `10.0.0.0/8` or `2001:db8::/32`, or a single address.
 * @param field - for the error
 * @throws AccessError `invalid_request`
 */
export function checkCidrs(field: string, cidrs: readonly string[]): readonly string[] {
  if (cidrs.length > cidrsMax) throw invalidRequest(`${field} holds more than ${cidrsMax} address blocks`);
  if (!cidrs.every(isCidr))
    throw invalidRequest(`${field} must hold address blocks such as 10.0.0.0/8 or 2001:db8::/32, or single addresses`);
  return cidrs;
}
