import { expect } from 'chai';
import { plotsOf, svg } from '../../../bench/growth/plot.ts';

const attributes = (image: string, element: string, name: string): string[] =>
  [...image.matchAll(new RegExp(`<${element} [^>]*\\b${name}="([^"]*)"`, 'g'))].map(([, value = '']) => value);

describe('the plots of bench:growth', () => {
  const curve = {
    size: 'keys',
    points: [
      { size: 1, 'encrypt, CPU µs': 100, 'create, CPU µs': 1000, 'start, ms': 1 },
      { size: 100, 'encrypt, CPU µs': 100, 'create, CPU µs': 10, 'start, ms': 0 },
    ],
  };

  it('are one image for each unit', () => {
    const plots = plotsOf(curve);
    expect([...plots.keys()]).to.deep.equal(['growth-keys-cpu-us', 'growth-keys-ms']);
    expect(plots.get('growth-keys-cpu-us')).to.contain('>encrypt<').and.contain('>create<').and.not.contain('>start<');
  });

  it('place values by their logarithm: a factor of ten is as far everywhere', () => {
    const points = [1, 10, 100].map((value) => ({ x: value, y: value }));
    const image = svg({ title: 't', xLabel: 'x', series: [{ name: 'line', points }] });
    const [xs, ys] = ['cx', 'cy'].map((name) => attributes(image, 'circle', name).map(Number)) as [number[], number[]];
    const steps = (values: number[]): number[] => values.slice(1).map((value, at) => value - (values[at] ?? 0));
    expect(steps(xs)[0]).to.be.closeTo(steps(xs)[1] ?? 0, 0.2);
    expect(steps(ys)[0]).to.be.closeTo(steps(ys)[1] ?? 0, 0.2);
    expect(steps(xs)[0]).to.be.above(0);
    expect(steps(ys)[0], 'up is towards zero').to.be.below(0);
    expect(attributes(image, 'polyline', 'points')).to.deep.equal([xs.map((x, at) => `${x},${ys[at]}`).join(' ')]);
  });

  it('leave out values that a logarithm does not have', () => {
    const image = plotsOf(curve).get('growth-keys-ms') ?? '';
    expect(attributes(image, 'circle', 'cx')).to.have.lengthOf(1);
    expect(image).to.not.match(/NaN|Infinity/);
  });

  it('draw every point inside the image, and nothing for no points', () => {
    const points = [1, 37, 999_999].map((x) => ({ x, y: x ** 2 / 1000 }));
    const image = svg({ title: 't', xLabel: 'x', series: [{ name: 'a', points }] });
    for (const x of attributes(image, 'circle', 'cx').map(Number)) expect(x).to.be.within(0, 640);
    for (const y of attributes(image, 'circle', 'cy').map(Number)) expect(y).to.be.within(0, 360);
    expect(svg({ title: 't', xLabel: 'x', series: [] })).to.not.match(/NaN|Infinity|<circle/);
  });

  it('escape texts', () => {
    const image = svg({ title: 'a < b & c', xLabel: '>', series: [{ name: '<script>', points: [] }] });
    expect(image).to.contain('a &lt; b &amp; c').and.contain('&lt;script&gt;').and.not.contain('<script');
  });
});
