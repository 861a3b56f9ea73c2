import { expect } from 'chai';
import { ActiveClaims } from './active-watch.ts';

type Row = readonly [node: string, since: string, askedMs: number, heardMs: number];

const violations = (...rows: readonly Row[]): number => {
  const claims = new ActiveClaims();
  for (const [node, since, askedMs, heardMs] of rows) claims.heard({ node, since, askedMs, heardMs });
  return claims.violations.length;
};

describe('the watch of active nodes', () => {
  it('finds a node that was active while another claimed to be', () => {
    expect(violations(['n1', 'a', 0, 1], ['n2', 'b', 2, 3], ['n1', 'a', 4, 5])).to.equal(1);
  });

  it('accepts nodes that follow each other, also if one is active twice', () => {
    expect(violations(['n1', 'a', 0, 1], ['n2', 'b', 2, 3], ['n2', 'b', 4, 5], ['n1', 'c', 6, 7])).to.equal(0);
  });

  it('draws no conclusion from calls that overlap', () => {
    expect(violations(['n1', 'a', 0, 2], ['n2', 'b', 1, 3], ['n1', 'a', 4, 5])).to.equal(0);
    expect(violations(['n1', 'a', 0, 1], ['n2', 'b', 2, 4], ['n1', 'a', 3, 5])).to.equal(0);
  });
});
