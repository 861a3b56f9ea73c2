import { expect } from 'chai';
import { allows, type Capability, capabilitiesOf, pathDenial } from '../../src/index.ts';
import { Acl } from '../../src/policy/acl.ts';
import { parsePolicy } from '../../src/policy/policy-text.ts';
import { tokenRecord } from '../token-record.ts';

const capabilities: readonly Capability[] = ['create', 'read', 'update', 'patch', 'delete', 'list', 'sudo'];
const common = { id: 'i', record: tokenRecord(), goodUntilMs: Number.POSITIVE_INFINITY };
const denying = new Acl([parsePolicy('path "sys/*" { capabilities = ["deny"] } path "a" { capabilities = ["read", "sudo"] }')]);
const root = { ...common, root: true, acl: denying };
const other = { ...common, root: false, acl: denying };

describe('a principal', () => {
  it('with the policy root may do everything, whatever its policies deny', () => {
    for (const capability of capabilities) expect(allows(root, capability, 'sys/seal')).to.equal(true);
    expect(pathDenial(root, 'sys/seal')).to.equal(undefined);
    expect(capabilitiesOf(root, 'sys/seal')).to.deep.equal(['root']);
  });

  it('without the policy root may do only what its policies grant', () => {
    for (const capability of capabilities) {
      expect(allows(other, capability, 'sys/seal')).to.equal(false);
      expect(allows(other, capability, 'a')).to.equal(capability === 'read' || capability === 'sudo');
    }
    expect([pathDenial(other, 'sys/seal') !== undefined, pathDenial(other, 'nowhere')]).to.deep.equal([true, undefined]);
    expect(capabilitiesOf(other, 'a')).to.deep.equal(['read', 'sudo']);
  });
});
