import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { variableNames } from '../src/environment.ts';
import { keyDocs } from '../src/key-docs.ts';
import { configKeys, configurationReference } from '../src/reference.ts';

const written = (): string => readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');

describe('the reference of the configuration', () => {
  it('describes every key of the schema, and no other', () => {
    expect(Object.keys(keyDocs)).to.have.members(configKeys().map(({ name }) => name));
  });

  it('is what the generator writes; otherwise run `npm run build`', () => {
    expect(written()).to.equal(configurationReference());
  });

  it('marks the keys that SIGHUP applies, and no other', () => {
    const marked = [...written().matchAll(/^\| `([^`]+)` \| [^|]*\*\*SIGHUP\*\* \|/gm)].map(([, name = '']) => name);
    const applied = Object.entries(keyDocs).filter(([, { reload }]) => reload);
    expect(marked).to.have.members(applied.map(([name]) => name));
  });

  it('names every environment variable', () => {
    expect(written().match(/TRANSITD_\w+/g)).to.have.members([...variableNames]);
  });

  for (const row of [
    '| `performance_standby` | Whether .* | true or false | `true` | `TRANSITD_PERFORMANCE_STANDBY` |',
    '| `raft.heartbeat` | .* | duration, at least 20ms | `50ms` | `TRANSITD_RAFT_HEARTBEAT` |',
    '| `pkcs11_libraries[].name` | .* | string | **required** | |',
    '| `log.level` | .*. **SIGHUP** | `trace`, `debug`, `info`, `warn`, `error`, `fatal`, `silent` | `info` | `TRANSITD_LOG_LEVEL` |',
    '| `seal.type` | .* | `shamir`, `static`, `transit`, `pkcs11`, `awskms`, `azurekeyvault`, `gcpckms` | **required** | `TRANSITD_SEAL_TYPE` |',
    '| `limits.reads` | .* | integer, 1 to 100000 | `1024` | `TRANSITD_LIMITS_READS` |',
    '| `barrier_rotation.interval` | .* | duration, 0 or at least 24h | `0` | `TRANSITD_BARRIER_ROTATION_INTERVAL` |',
  ]) {
    it(`has the row ${row}`, () => {
      const pattern = row
        .split('.*')
        .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
        .join('.*');
      expect(written()).to.match(new RegExp(`^${pattern}$`, 'm'));
    });
  }
});
