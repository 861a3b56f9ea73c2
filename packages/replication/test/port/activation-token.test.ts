import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { nameIn } from '../../../cluster/src/membership/certificate.ts';
import { ClusterError } from '../../../cluster/src/refusals/cluster-error.ts';
import { clusterId, type TestCluster, testCluster } from '../../../cluster/test/credentials.ts';
import { makeTokenKey, readActivationToken, tokenPublicKey, writeActivationToken } from '../../src/port/activation-token.ts';
import { decodeCredential, encodeCredential, withNodes } from '../../src/port/credential.ts';
import {
  makeActivationCertificate,
  makeSecondaryRequest,
  primaryNodeFault,
  secondaryIn,
  signSecondary,
} from '../../src/port/secondary-certificate.ts';
import { ReplicationError } from '../../src/replication-error.ts';

const codeOf = async (promise: Promise<unknown>): Promise<string> => {
  try {
    await promise;
  } catch (error) {
    if (error instanceof ReplicationError) return error.code;
    throw error;
  }
  return 'no error';
};

describe('an activation token', () => {
  let cluster: TestCluster;
  let token: Parameters<typeof writeActivationToken>[0];
  before(async () => {
    cluster = await testCluster();
    const made = await makeActivationCertificate(cluster.authority, {
      clusterId,
      secondary: 'east',
      now: new Date(),
      ttlMs: 60_000,
    });
    token = {
      ...{ secondary: 'east', clusterId, addresses: ['10.0.0.1:8201'], authorities: [cluster.authority.certificate] },
      ...{ key: made.key, certificate: made.certificate, set: '0a'.repeat(16), seal: 'own', expiresMs: 17 },
    };
  });

  it('is read as it was written, in clear and encrypted', async () => {
    expect(await readActivationToken(await writeActivationToken(token))).to.deep.equal(token);
    const { key, publicKey } = makeTokenKey();
    const text = await writeActivationToken(token, tokenPublicKey(publicKey));
    expect(await readActivationToken(text, key)).to.deep.equal(token);
    const [header = ''] = text.split('.');
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).to.include({ alg: 'ECDH-ES', enc: 'A256GCM' });
    for (const part of [...text.split('.'), text])
      expect(Buffer.from(part, 'base64url').toString(), 'the encrypted token shows nothing').not.to.include('PRIVATE KEY');
  });

  it('is refused with another key, without a key, and when one character is changed', async () => {
    const { key, publicKey } = makeTokenKey();
    const text = await writeActivationToken(token, tokenPublicKey(publicKey));
    expect(await codeOf(readActivationToken(text))).to.equal('key_missing');
    expect(await codeOf(readActivationToken(text, makeTokenKey().key))).to.equal('wrong_key');
    for (let at = 0; at < text.length; at += 97) {
      const changed = text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1);
      expect(await codeOf(readActivationToken(changed, key)), `character ${at}`).to.be.oneOf(['wrong_key', 'malformed']);
    }
  });

  it('throws ReplicationError, and no other error, for any other text', async () => {
    const { key } = makeTokenKey();
    const texts = fc.oneof(
      fc.string(),
      fc.json().map((json) => `transitd-dr.${Buffer.from(json).toString('base64url')}`),
      fc.array(fc.base64String(), { minLength: 5, maxLength: 5 }).map((parts) => parts.join('.')),
      fc.constant('a'.repeat(40_000)),
      fc.constant('eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..AAAA.AAAA.AAAA'),
    );
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        expect(await codeOf(readActivationToken(text, key))).to.be.oneOf(['malformed', 'wrong_key']);
      }),
    );
  });

  it('is refused if its key and certificate are no pair, or an address is malformed', async () => {
    const other = await makeActivationCertificate(cluster.authority, { clusterId, secondary: 'west', now: new Date(), ttlMs: 1 });
    expect(await codeOf(readActivationToken(await writeActivationToken({ ...token, key: other.key })))).to.equal('malformed');
    for (const address of ['', 'host', 'host:0', 'http://host:1', 'a b:1'])
      expect(await codeOf(readActivationToken(await writeActivationToken({ ...token, addresses: [address] })))).to.equal(
        'malformed',
      );
    expect(await codeOf(readActivationToken(await writeActivationToken({ ...token, addresses: [] })))).to.equal('malformed');
  });

  it('is encrypted only for an EC P-256 key', () => {
    const rsa =
      'MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAKj34GkxFhD90vcNLYLInFEX6Ppy1tPf9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit+CqvjWYzvQwECAwEAAQ==';
    for (const text of ['', 'x', rsa, `${makeTokenKey().publicKey}${'A'.repeat(400)}`])
      expect(() => tokenPublicKey(text), text).to.throw(ReplicationError, 'secondary_public_key');
  });

  it('keeps the credential of a secondary as it was', () => {
    const { expiresMs: _, set: __, seal: ___, ...credential } = token;
    expect(decodeCredential(encodeCredential(credential))).to.deep.equal(credential);
    for (const bytes of ['', '{}', '[]', encodeCredential({ ...credential, certificate: 'x' }).toString()])
      expect(() => decodeCredential(Buffer.from(bytes)), bytes).to.throw(Error, 'core/replication/primary');
  });
});

describe('the nodes of a primary in a credential', () => {
  it('are replaced by those that the primary tells, unless they are malformed', async () => {
    const { authority } = await testCluster();
    const made = await makeActivationCertificate(authority, { clusterId, secondary: 'east', now: new Date(), ttlMs: 60_000 });
    const authorities = [authority.certificate];
    const credential = { secondary: 'east', clusterId, addresses: ['10.0.0.1:8201'], authorities, ...made };
    const addresses = ['10.0.0.2:8201', '10.0.0.3:8201'];
    expect(withNodes(credential, { addresses, authorities })).to.deep.equal({ ...credential, addresses });
    for (const nodes of [
      { addresses: credential.addresses, authorities },
      { addresses: [], authorities },
      { addresses: ['nowhere'], authorities },
      { addresses, authorities: [] },
      { addresses, authorities: ['x'] },
    ])
      expect(withNodes(credential, nodes)).to.equal(credential);
  });
});

describe('certificates of secondaries', () => {
  it('name the secondary and its primary, and are never those of a node', async () => {
    const { authority } = await testCluster();
    const ca = new X509Certificate(authority.certificate);
    for (const secondary of ['east', '7', '281474976710655']) {
      const { request } = await makeSecondaryRequest(secondary, 'c1');
      const now = new Date();
      const { certificate } = await signSecondary(authority, { clusterId, secondary, request, now });
      const activation = await makeActivationCertificate(authority, { clusterId, secondary, now, ttlMs: 1 });
      const signed = new X509Certificate(certificate);
      expect(secondaryIn(signed, { clusterId, authorities: [ca] })).to.equal(secondary);
      expect(signed.ca).to.equal(false);
      expect(signed.keyUsage, 'clients only').to.deep.equal(['1.3.6.1.5.5.7.3.2']);
      for (const pem of [certificate, activation.certificate]) {
        expect(nameIn(new X509Certificate(pem), ca)).to.equal(undefined);
        expect(primaryNodeFault(new X509Certificate(pem), { clusterId, authorities: [authority.certificate] })).to.be.a('string');
      }
      expect(secondaryIn(new X509Certificate(activation.certificate), { clusterId, authorities: [ca] })).to.equal(undefined);
    }
  });

  it('are accepted only from the given cluster and authority', async () => {
    const [one, two] = await Promise.all([testCluster(), testCluster()]);
    const { request } = await makeSecondaryRequest('east', 'c1');
    const { certificate } = await signSecondary(one.authority, { clusterId, secondary: 'east', request, now: new Date() });
    const signed = new X509Certificate(certificate);
    const [ca, otherCa] = [one, two].map(({ authority }) => new X509Certificate(authority.certificate)) as [
      X509Certificate,
      X509Certificate,
    ];
    expect(secondaryIn(signed, { clusterId, authorities: [otherCa] })).to.equal(undefined);
    expect(secondaryIn(signed, { clusterId: 'f00', authorities: [ca] })).to.equal(undefined);
    const node = new X509Certificate((await one.node(3)).identity.certificate);
    expect(secondaryIn(node, { clusterId, authorities: [ca] })).to.equal(undefined);
    expect(primaryNodeFault(node, { clusterId, authorities: [one.authority.certificate] })).to.equal(undefined);
    expect(primaryNodeFault(node, { clusterId: 'f00', authorities: [one.authority.certificate] })).to.include('another cluster');
    expect(primaryNodeFault(node, { clusterId, authorities: [two.authority.certificate] })).to.include('no authority');
  });

  it('are not signed for a request of another name or without a signature', async () => {
    const { authority } = await testCluster();
    const { request } = await makeSecondaryRequest('east', 'c1');
    for (const [secondary, text] of [
      ['west', request],
      ['east', request.replace(/[A-Z](?=[^\n]*\n-----END)/, (letter) => (letter === 'A' ? 'B' : 'A'))],
      ['east', 'x'],
      ['east', 'x'.repeat(5000)],
    ] as const) {
      const error = await signSecondary(authority, { clusterId, secondary, request: text, now: new Date() }).catch(
        (one: unknown) => one,
      );
      expect(error).to.be.instanceOf(ClusterError);
    }
  });
});
