import { expect } from 'chai';
import { allows, type Capability } from '../src/index.ts';

const capabilities: readonly Capability[] = ['create', 'read', 'update', 'patch', 'delete', 'list', 'sudo'];
const principal = { accessor: 'a', displayName: 'd' };

describe('allows', () => {
  it('lets root do everything', () => {
    for (const capability of capabilities)
      expect(allows({ ...principal, policies: ['root'], root: true }, capability, 'sys/seal')).to.equal(true);
  });

  it('lets nobody else do anything', () => {
    for (const capability of capabilities)
      expect(allows({ ...principal, policies: ['default'], root: false }, capability, 'sys/seal')).to.equal(false);
  });
});
