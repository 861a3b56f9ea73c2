import { BlockList, isIP } from 'node:net';
import { expect } from 'chai';
import fc from 'fast-check';
import { callerGroup, canonicalCidr, isCidr, withinCidrs } from '../src/index.ts';

describe('CIDR blocks', () => {
  for (const [text, expected] of [
    ['10.0.0.0/8', true],
    ['0.0.0.0/0', true],
    ['192.0.2.1', true],
    ['2001:db8::/32', true],
    ['::1', true],
    ['10.0.0.0/33', false],
    ['10.0.0.0/08', false],
    ['10.0.0/8', false],
    ['10.0.0.0/8/8', false],
    ['2001:db8::/129', false],
    ['fe80::1%eth0', false],
    ['example.org', false],
    ['', false],
  ] as const)
    it(`${JSON.stringify(text)} is ${expected ? 'valid' : 'invalid'}`, () => {
      expect(isCidr(text)).to.equal(expected);
    });

  for (const [cidrs, address, expected] of [
    [[], '192.0.2.1', true],
    [[], 'nonsense', true],
    [['10.0.0.0/8'], '10.255.0.1', true],
    [['10.0.0.0/8'], '11.0.0.1', false],
    [['10.0.0.0/8'], '::ffff:10.0.0.1', true],
    [['10.0.0.0/8'], '::1', false],
    [['::/0'], '10.0.0.1', false],
    [['10.0.0.0/8', '2001:db8::/32'], '2001:db8:1::2', true],
    [['192.0.2.1'], '192.0.2.1', true],
    [['192.0.2.1'], '192.0.2.2', false],
    [['0.0.0.0/0'], '', false],
    [['0.0.0.0/0'], 'nonsense', false],
  ] as const)
    it(`${address} is ${expected ? 'in' : 'not in'} [${cidrs}]`, () => {
      expect(withinCidrs(cidrs, address)).to.equal(expected);
    });

  it("contain the same addresses as Node's BlockList", () => {
    const address = fc.oneof(fc.ipV4(), fc.ipV6());
    fc.assert(
      fc.property(address, address, fc.nat(128), (base, other, bits) => {
        const family = isIP(base) === 4 ? 'ipv4' : 'ipv6';
        const prefix = family === 'ipv4' ? bits % 33 : bits;
        const blocks = new BlockList();
        blocks.addSubnet(base, prefix, family);
        for (const one of [base, other])
          expect(withinCidrs([`${base}/${prefix}`], one), one).to.equal(isIP(one) === isIP(base) && blocks.check(one, family));
      }),
    );
  });

  it('parse any text as Node does', () => {
    const piece = fc.constantFrom('::', ':', '0', 'ffff', '12345', '1.2.3.4', '.', '256', 'g', '%', '01');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 10 }), (pieces) => {
        const text = pieces.join('');
        expect(isCidr(text), text).to.equal(isIP(text) !== 0 && !text.includes('%'));
      }),
      { numRuns: 3000 },
    );
  });

  it('group callers by IPv4 address or IPv6 /64', () => {
    expect(callerGroup('::ffff:192.0.2.1')).to.equal('192.0.2.1');
    expect(callerGroup('2001:db8:1:2:3::4')).to.equal(callerGroup('2001:db8:1:2:ffff::'));
    expect(callerGroup('2001:db8:1:2::')).not.to.equal(callerGroup('2001:db8:1:3::'));
  });
});

describe('canonicalCidr', () => {
  it('is the same for two blocks exactly if each contains the first address of the other, with the same length', () => {
    const version = fc.constantFrom<4 | 6>(4, 6);
    fc.assert(
      fc.property(version, fc.ipV4(), fc.ipV4(), fc.ipV6(), fc.ipV6(), fc.nat(128), (family, a4, b4, a6, b6, length) => {
        const [one, other, bits] = family === 4 ? [a4, b4, length % 33] : [a6, b6, length];
        const [first, second] = [`${one}/${bits}`, `${other}/${bits}`];
        const areSame = withinCidrs([first], other) && withinCidrs([second], one);
        expect(canonicalCidr(first) === canonicalCidr(second)).to.equal(areSame);
      }),
    );
  });

  for (const [text, canonical] of [
    ['10.1.2.3/8', '10.0.0.0/8'],
    ['10.1.2.3', '10.1.2.3/32'],
    ['2001:DB8::1/32', '2001:db8:0:0:0:0:0:0/32'],
    ['::/0', '0:0:0:0:0:0:0:0/0'],
    ['10.0.0.0/33', undefined],
    ['x', undefined],
  ] as const)
    it(`of ${text} is ${canonical}`, () => {
      expect(canonicalCidr(text)).to.equal(canonical);
    });
});
