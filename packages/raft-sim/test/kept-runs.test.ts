import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { configOf, runSimulation, type SimConfig, withExtraFaults } from '../src/index.ts';

const folder = join(import.meta.dirname, 'regressions');

/** Those without extra faults: the tests below compare them with the same runs that have the second random stream. */
const kept = readdirSync(folder).flatMap((file): readonly { readonly name: string; readonly config: SimConfig }[] => {
  const { config }: { config: SimConfig } = JSON.parse(readFileSync(join(folder, file), 'utf8'));
  return config.extra === undefined ? [{ name: file.replace('.json', ''), config }] : [];
});
const seeds = [3, 17, 42].flatMap((seed) =>
  (['core', 'driver'] as const).map((profile) => ({
    name: `${profile} ${seed}`,
    config: configOf(seed, profile, 3_000),
  })),
);

/** The second random stream is present, but no fault is drawn from it. */
const silent = (config: SimConfig): SimConfig => ({ ...config, extra: { seed: 7, flushMsMax: 0, schedule: [] } });

describe('faults of the second random stream', () => {
  for (const { name, config } of [...kept, ...seeds]) {
    it(`leave the run unchanged if none is drawn: ${name}`, () => {
      const before = runSimulation(config);
      const beside = runSimulation(silent(config));
      expect([beside.hash, beside.events]).to.deep.equal([before.hash, before.events]);
      expect([...beside.coverage]).to.deep.equal([...before.coverage]);
    });
  }

  it('change nothing that a seed draws from the first stream, except what a scenario needs', () => {
    for (let seed = 1; seed <= 200; seed++) {
      const config = configOf(seed, 'core', 1_000);
      const { extra, separate, nodes, leaseReads, sizes, ...rest } = withExtraFaults(config);
      const { nodes: _nodes, leaseReads: _leaseReads, sizes: _sizes, ...first } = config;
      expect(rest).to.deep.equal(first);
      expect(config).not.to.have.property('extra');
      if (extra?.schedule.some(({ kind }) => kind === 'stopClock'))
        expect(leaseReads).to.equal(separate?.suspensions !== undefined);
      expect(nodes).to.be.oneOf([config.nodes, 2]);
      expect(sizes.windowCount).to.equal(config.sizes.windowCount);
    }
  });

  it('are drawn and carried out alike for the same seed', () => {
    const [once, twice] = [1, 2].map(() => runSimulation(withExtraFaults(configOf(5, 'core', 3_000))));
    expect(once?.hash).to.equal(twice?.hash);
    expect(once?.hash).not.to.equal(runSimulation(configOf(5, 'core', 3_000)).hash);
  });
});
