import { expect } from 'chai';
import { readPod } from '../../src/providers/key-sources.ts';

describe('a pod', () => {
  const env = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };
  const files: Record<string, string> = { 'ca.crt': 'CA', token: 'one\n' };
  const podFile = (name: string): string | undefined => files[name];

  it('has the address, the CA and the token of its cluster', () => {
    expect(readPod(podFile, env)).to.deep.equal({ apiServer: 'https://10.96.0.1:443', ca: 'CA', token: 'one' });
    const v6 = { ...env, KUBERNETES_SERVICE_HOST: 'fd00::1' };
    expect(readPod(podFile, v6).apiServer).to.equal('https://[fd00::1]:443');
  });

  it('is missed outside of a cluster', () => {
    for (const missing of Object.keys(env))
      expect(() => readPod(podFile, { ...env, [missing]: '' })).to.throw('this node runs in no pod');
    for (const missing of Object.keys(files))
      expect(() => readPod((name) => (name === missing ? undefined : files[name]), env)).to.throw('has no service account');
  });
});
