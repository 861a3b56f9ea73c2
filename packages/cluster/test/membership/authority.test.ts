import '../../src/membership/reflect-metadata.ts'; // the library below needs it
import { X509Certificate } from 'node:crypto';
import { Pkcs10CertificateRequestGenerator } from '@peculiar/x509';
import { memoryStore } from '@transitd/storage-fsm';
import { expect } from 'chai';
import {
  authorityPath,
  authorityRecord,
  isPair,
  makeAuthority,
  makeRequest,
  readAuthority,
  signRequest,
} from '../../src/membership/authority.ts';
import { nameIn, renewalDue } from '../../src/membership/certificate.ts';
import { ClusterError } from '../../src/refusals/cluster-error.ts';

const clusterId = '6b7c6f0e-2f0b-4c34-9d6b-0f8c1d2e3a4b';
const now = new Date('2026-06-01T00:00:00Z');
const dayMs = 24 * 3_600_000;

const refusal = async (promise: Promise<unknown>): Promise<unknown> => {
  try {
    return await promise;
  } catch (error) {
    return error;
  }
};

describe('the cluster’s authority', () => {
  it('certifies a node’s own key under its id and its cluster', async () => {
    const authority = await makeAuthority(clusterId, now);
    const { key, request } = await makeRequest(42);
    const pem = await signRequest(authority, { request, nodeId: 42, clusterId, now });
    const certificate = new X509Certificate(pem);
    expect(certificate.subject).to.equal('CN=42');
    expect(certificate.subjectAltName).to.equal(`URI:transitd:${clusterId}/42`);
    expect(certificate.ca).to.equal(false);
    expect(isPair({ key, certificate: pem })).to.equal(true);
    expect(nameIn(certificate, new X509Certificate(authority.certificate))).to.deep.equal({ clusterId, nodeId: 42 });
  });

  it('certifies for a year, half of which is for renewal', async () => {
    const authority = await makeAuthority(clusterId, now);
    const { request } = await makeRequest(42);
    const certificate = new X509Certificate(await signRequest(authority, { request, nodeId: 42, clusterId, now }));
    expect(certificate.validToDate.getTime()).to.equal(now.getTime() + 365 * dayMs);
    for (const [days, due] of [
      [-1, false],
      [182, false],
      [183, true],
      [366, true],
    ] as const)
      expect(renewalDue(certificate, now.getTime() + days * dayMs), `after ${days} days`).to.equal(due);
  });

  it('never gives two certificates one serial number', async () => {
    const authority = await makeAuthority(clusterId, now);
    const { request } = await makeRequest(42);
    const [one, two] = await Promise.all([1, 2].map(() => signRequest(authority, { request, nodeId: 42, clusterId, now })));
    expect(new X509Certificate(one ?? '').serialNumber).to.not.equal(new X509Certificate(two ?? '').serialNumber);
  });

  const rsa = async (): Promise<string> => {
    const algorithm = {
      name: 'RSASSA-PKCS1-v1_5',
      hash: 'SHA-256',
      publicExponent: new Uint8Array([1, 0, 1]),
      modulusLength: 2048,
    };
    const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
    return (await Pkcs10CertificateRequestGenerator.create({ name: 'CN=42', keys, signingAlgorithm: algorithm })).toString('pem');
  };
  const tampered = async (): Promise<string> => {
    const der = Buffer.from((await makeRequest(42)).request.replace(/-----[^-]+-----/g, ''), 'base64');
    const flipped = der.toString('latin1').replace('42', '43');
    const pem = Buffer.from(flipped, 'latin1').toString('base64');
    return `-----BEGIN CERTIFICATE REQUEST-----\n${pem}\n-----END CERTIFICATE REQUEST-----`;
  };
  for (const [what, make] of [
    ['that names another node', async () => (await makeRequest(43)).request],
    ['whose name was changed after it was signed', tampered],
    ['for an RSA key', rsa],
    ['that is no PEM', async () => 'none'],
    ['that is empty', async () => ''],
    ['that is too long', async () => 'A'.repeat(5000)],
    ['that is a certificate', async () => (await makeAuthority(clusterId, now)).certificate],
  ] as const)
    it(`refuses a request ${what}`, async () => {
      const authority = await makeAuthority(clusterId, now);
      const nodeId = what.includes('changed') ? 43 : 42;
      const answer = await refusal(signRequest(authority, { request: await make(), nodeId, clusterId, now }));
      expect(answer).to.be.instanceOf(ClusterError);
    });

  it('is stored in a record with a format number', async () => {
    const store = memoryStore();
    expect(await readAuthority(store)).to.equal(undefined);
    const authority = await makeAuthority(clusterId, now);
    await store.commit({ conditions: [], writes: [authorityRecord(authority)] });
    expect(await readAuthority(store)).to.deep.equal(authority);
  });

  it('refuses a record of another format, and one whose key and certificate do not match', async () => {
    const store = memoryStore();
    const [one, two] = [await makeAuthority(clusterId, now), await makeAuthority(clusterId, now)];
    for (const json of [{ ...one, format: 2 }, { format: 1, key: one.key, certificate: two.certificate }, { format: 1 }, 'x']) {
      await store.commit({ conditions: [], writes: [{ path: authorityPath, value: Buffer.from(JSON.stringify(json)) }] });
      const error = (await refusal(readAuthority(store))) as Error;
      expect(error.message).to.equal(`the record ${authorityPath} has an unknown format`);
      expect(String(error.cause)).to.not.include('PRIVATE');
    }
  });
});

describe('the node that a certificate names', () => {
  it('is undefined for the authority itself, and for nodes of another authority', async () => {
    const [local, other] = await Promise.all([makeAuthority(clusterId, now), makeAuthority(clusterId, now)]);
    const { request } = await makeRequest(42);
    const foreign = new X509Certificate(await signRequest(other, { request, nodeId: 42, clusterId, now }));
    const authority = new X509Certificate(local.certificate);
    expect(nameIn(authority, authority)).to.equal(undefined);
    expect(nameIn(foreign, authority)).to.equal(undefined);
  });
});
