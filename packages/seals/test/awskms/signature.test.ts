import { expect } from 'chai';
import { signedHeaders } from '../../src/awskms/signature.ts';

const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const scope = { credentials, region: 'us-east-1', service: 'service', time: new Date('2015-08-30T12:36:00Z') };
const request = { method: 'POST', host: 'example.amazonaws.com', headers: {}, body: '' } as const;
const form = 'application/x-www-form-urlencoded';

/** Cases of the test suite that AWS publishes for Signature Version 4, with requests to `/` without a query. */
const published = [
  [
    'get-vanilla',
    { ...request, method: 'GET' },
    'host;x-amz-date',
    '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31',
  ],
  ['post-vanilla', request, 'host;x-amz-date', '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'],
  [
    'post-header-value-case',
    { ...request, headers: { 'my-header1': 'VALUE1' } },
    'host;my-header1;x-amz-date',
    'cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d',
  ],
  [
    'post-x-www-form-urlencoded',
    { ...request, headers: { 'content-type': form }, body: 'Param1=value1' },
    'content-type;host;x-amz-date',
    'ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a',
  ],
  [
    'post-x-www-form-urlencoded-parameters',
    { ...request, headers: { 'content-type': `${form}; charset=utf8` }, body: 'Param1=value1' },
    'content-type;host;x-amz-date',
    '1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe',
  ],
] as const;

describe('AWS Signature Version 4', () => {
  for (const [name, unsigned, names, signature] of published)
    it(`signs ${name} as AWS has published it`, () => {
      expect(signedHeaders(unsigned, scope)['authorization']).to.equal(
        `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=${names}, Signature=${signature}`,
      );
    });

  it('collapses spaces in a header as AWS does', () => {
    const signatureOf = (value: string): unknown =>
      signedHeaders({ ...request, headers: { 'my-header1': value } }, scope)['authorization'];
    expect(signatureOf('  a   b  ')).to.equal(signatureOf('a b'));
  });

  it('signs a request to KMS with temporary credentials as the SDK for Python does', () => {
    const unsigned = {
      method: 'POST',
      host: 'kms.eu-central-1.amazonaws.com',
      headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': 'TrentService.Encrypt' },
      body: '{"KeyId":"alias/unseal","Plaintext":"AAAA"}',
    } as const;
    const headers = signedHeaders(unsigned, {
      credentials: { ...credentials, sessionToken: 'session/token==' },
      region: 'eu-central-1',
      service: 'kms',
      time: new Date('2026-11-23T10:00:00.987Z'),
    });
    expect(headers).to.include({ 'x-amz-date': '20261123T100000Z', 'x-amz-security-token': 'session/token==' });
    expect(headers['authorization']).to.equal(
      'AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261123/eu-central-1/kms/aws4_request' +
        ', SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target' +
        ', Signature=a06ead46571eba747a436d617d3f6ee2a35aab4fd4bd0f095d1aa8535b06c2dc',
    );
  });
});
