import { createHash, createHmac, randomBytes } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { exchangedBefore, joinerProof, leaderProof } from '../../src/join/join-exchange.ts';
import {
  decodeAnswer,
  decodeOffer,
  decodeRequest,
  decodeWelcome,
  encodeAdmission,
  encodeAnnouncement,
  encodeAnswer,
  encodeOffer,
  encodeRequest,
  encodeWelcome,
  type JoinOffer,
  type JoinRequest,
  type JoinWelcome,
} from '../../src/join/join-messages.ts';
import { ClusterError } from '../../src/refusals/cluster-error.ts';

const pem = (label: string): string => `-----BEGIN ${label}-----\n${'QUJD'.repeat(16)}\nQUI=\n-----END ${label}-----\n`;

const request: JoinRequest = {
  id: 42,
  name: 'n42',
  apiAddress: 'https://10.0.0.42:8200',
  clusterAddress: '[fd00::2a]:8201',
  nonVoter: false,
  levels: { oldest: 1, newest: 2 },
  request: pem('CERTIFICATE REQUEST'),
  nonce: randomBytes(32),
};
const offer: JoinOffer = {
  clusterId: '6b7c6f0e-2f0b-4c34-9d6b-0f8c1d2e3a4b',
  authority: pem('CERTIFICATE'),
  terms: { type: 'shamir', shares: 3, threshold: 2, shareHashes: [1, 2, 3].map(() => randomBytes(32)), keyId: '' },
  challengeId: randomBytes(16).toString('hex'),
  wrapped: randomBytes(93),
};
const answer = { challengeId: offer.challengeId, proof: randomBytes(32) };
const member = {
  id: 1,
  name: 'n1',
  apiAddress: 'https://10.0.0.1:8200',
  clusterAddress: '10.0.0.1:8201',
  certificate: 'ab'.repeat(32),
  nonVoter: true,
  levels: { oldest: 1, newest: 1 },
};
const welcome: JoinWelcome = {
  certificate: pem('CERTIFICATE'),
  members: [member, { ...member, id: 2, name: 'n2', nextCertificate: 'cd'.repeat(32) }],
  proof: randomBytes(32),
};

/** Returns the message as received: through JSON. */
const sent = (message: object): unknown => JSON.parse(JSON.stringify(message));

const problemOf = (decode: (message: unknown) => unknown, message: unknown): string => {
  try {
    decode(message);
  } catch (error) {
    if (error instanceof ClusterError && error.code === 'join_malformed') return error.message;
    throw error;
  }
  throw new Error('it was taken');
};

describe('the messages of a join', () => {
  it('are read as they were written', () => {
    expect(decodeRequest(sent(encodeRequest(request)))).to.deep.equal(request);
    expect(decodeOffer(sent(encodeOffer(offer)))).to.deep.equal(offer);
    const fixed: JoinOffer = { ...offer, terms: { ...offer.terms, type: 'static', keyId: 'k1' } };
    expect(decodeOffer(sent(encodeOffer(fixed)))).to.deep.equal(fixed);
    const provided: JoinOffer = {
      ...offer,
      terms: { ...offer.terms, type: 'transit', name: 'n', keyId: 'k', wrappedKey: 'svc:v1:AA==' },
    };
    expect(decodeOffer(sent(encodeOffer(provided)))).to.deep.equal(provided);
    expect(decodeAnswer(sent(encodeAnswer(answer)))).to.deep.equal(answer);
    expect(decodeWelcome(sent(encodeWelcome(welcome)))).to.deep.equal(welcome);
  });

  it('have these bytes in every release, because the proofs cover them', () => {
    const pinned = { type: 'transit', threshold: 1, shares: 1, keyId: 'k', name: 'n', wrappedKey: 'w' } as const;
    const terms = { ...pinned, shareHashes: [Buffer.alloc(32, 0xab)] };
    const [nonce, proof, wrapped] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2), Buffer.alloc(93, 3)];
    const [authority, challengeId] = ['a', 'cd'.repeat(16)];
    const announcement = { wrapped, terms, challengeId, authority, clusterId: 'c' };
    const admission = { members: welcome.members.slice(1), certificate: 'a' };
    const base64 = (bytes: Buffer): string => bytes.toString('base64');
    for (const [message, text] of [
      [
        encodeRequest({ added: { 9: 1, later: 2 }, ...request, request: 'r', nonce }),
        '{"9":1,"node_id":42,"name":"n42","api_addr":"https://10.0.0.42:8200","cluster_addr":"[fd00::2a]:8201",' +
          `"non_voter":false,"feature_levels":{"oldest":1,"newest":2},"request":"r","nonce":"${base64(nonce)}","later":2}`,
      ],
      [encodeAnnouncement(announcement), `{"cluster_id":"c","authority":"a","challenge_id":"${challengeId}"}`],
      [
        encodeOffer(announcement),
        `{"cluster_id":"c","authority":"a","challenge_id":"${challengeId}","seal":{"type":"transit","threshold":1,"shares":1,` +
          `"share_hashes":["${'ab'.repeat(32)}"],"key_id":"k","wrapped_key":"w","name":"n"},"wrapped":"${base64(wrapped)}"}`,
      ],
      [encodeAnswer({ proof, challengeId }), `{"challenge_id":"${challengeId}","proof":"${base64(proof)}"}`],
      [
        encodeWelcome({ proof, ...admission }),
        '{"certificate":"a","members":[{"node_id":2,"name":"n2","api_addr":"https://10.0.0.1:8200",' +
          `"cluster_addr":"10.0.0.1:8201","certificate":"${'ab'.repeat(32)}","next_certificate":"${'cd'.repeat(32)}",` +
          `"non_voter":true,"feature_levels":{"oldest":1,"newest":1}}],"proof":"${base64(proof)}"}`,
      ],
    ] as const)
      expect(JSON.stringify(message)).to.equal(text);
    const { proof: _, ...admitted } = encodeWelcome({ proof, ...admission }) as { proof: string };
    expect(JSON.stringify(encodeAdmission(admission))).to.equal(JSON.stringify(admitted));
  });

  it('take a request with fields of a later release, and cover them with the proofs', () => {
    const later = sent({ ...encodeRequest(request), 9: 1, later: { nested: [true] }, again: 'x' });
    const read = decodeRequest(later);
    expect(read.added).to.deep.equal({ 9: 1, later: { nested: [true] }, again: 'x' });
    expect(JSON.stringify(encodeRequest(read)), 'encoded again').to.equal(JSON.stringify(later));
    expect(exchangedBefore(read, offer).equals(exchangedBefore(request, offer))).to.equal(false);
  });

  const changed = (base: object, change: Record<string, unknown>): unknown => sent({ ...base, ...change });
  const encodedSeal = (encodeOffer(offer) as { seal: object }).seal;
  const encodedMembers = (encodeWelcome(welcome) as { members: object[] }).members;

  const idProblem = 'node_id is not a whole number from 1 to 281474976710655';
  const apiProblem = 'api_addr is not an http or https address of at most 256 characters';
  const clusterProblem = 'cluster_addr is not an address such as 10.0.0.1:8201, of at most 256 characters';
  const csrProblem = 'request is not one CERTIFICATE REQUEST in PEM of at most 4096 characters';
  const nonceProblem = 'nonce is not the base64 of 32 bytes';
  for (const [change, problem] of [
    [{ node_id: 0 }, idProblem],
    [{ node_id: 2 ** 48 }, idProblem],
    [{ node_id: 1.5 }, idProblem],
    [{ node_id: '42' }, idProblem],
    [{ node_id: undefined }, idProblem],
    [{ name: '' }, 'name is not a name of at most 64 letters, digits, _ . and -'],
    [{ name: 'n'.repeat(65) }, 'name is not a name of at most 64 letters, digits, _ . and -'],
    [{ name: 'a b' }, 'name is not a name of at most 64 letters, digits, _ . and -'],
    [{ name: 'a\n' }, 'name is not a name of at most 64 letters, digits, _ . and -'],
    [{ api_addr: 'ftp://10.0.0.1' }, apiProblem],
    [{ api_addr: 'https://' }, apiProblem],
    [{ api_addr: ' https://10.0.0.1' }, apiProblem],
    [{ api_addr: 'https://10.0.0.1\n' }, apiProblem],
    [{ api_addr: 'https://user:secret@10.0.0.1' }, apiProblem],
    [{ api_addr: `https://${'a'.repeat(249)}` }, apiProblem],
    [{ cluster_addr: '10.0.0.1' }, clusterProblem],
    [{ cluster_addr: '10.0.0.1:0' }, clusterProblem],
    [{ cluster_addr: `${'a'.repeat(252)}:8201` }, clusterProblem],
    [{ non_voter: 'false' }, 'non_voter is neither true nor false'],
    [{ request: pem('CERTIFICATE') }, csrProblem],
    [{ request: request.request + request.request }, csrProblem],
    [{ request: `${request.request} ` }, csrProblem],
    [{ request: request.request.replace('\n', '\r\n') }, csrProblem],
    [{ request: request.request.replace('QUI=', 'QUJD'.repeat(1024)) }, csrProblem],
    [{ request: request.request.replace('QUI=', `${'QUJD'.repeat(16)}\n`.repeat(64).trim()) }, csrProblem],
    [{ nonce: randomBytes(31).toString('base64') }, nonceProblem],
    [{ nonce: randomBytes(33).toString('base64') }, nonceProblem],
    [{ nonce: `${Buffer.alloc(32).toString('base64').slice(0, -2)}B=` }, nonceProblem],
    [{ nonce: request.nonce.toString('base64url') }, nonceProblem],
    [{ nonce: [1] }, nonceProblem],
    [{ feature_levels: undefined }, 'feature_levels is not a range of feature levels'],
    [{ feature_levels: { oldest: 0, newest: 1 } }, 'feature_levels.oldest is not a whole number from 1 to 4294967295'],
    [{ more: 'a'.repeat(4096) }, 'the message has unknown fields of more than 4096 characters'],
  ] as [Record<string, unknown>, string][])
    it(`refuse a request with ${JSON.stringify(change).slice(0, 60)}: ${problem}`, () => {
      expect(problemOf(decodeRequest, changed(encodeRequest(request), change))).to.equal(problem);
    });

  const authorityProblem = 'authority is not one CERTIFICATE in PEM of at most 8192 characters';
  for (const [change, problem] of [
    [{ cluster_id: '' }, 'cluster_id is not the id of a cluster'],
    [{ cluster_id: 'a'.repeat(65) }, 'cluster_id is not the id of a cluster'],
    [{ authority: pem('CERTIFICATE REQUEST') }, authorityProblem],
    [{ authority: undefined }, authorityProblem],
    [{ challenge_id: 'A'.repeat(32) }, 'challenge_id is not the id of a challenge'],
    [{ wrapped: randomBytes(92).toString('base64') }, 'wrapped is not the base64 of 93 bytes'],
    [{ seal: { ...encodedSeal, type: 'other' } }, 'seal.type is not a type of seal that this release knows'],
    [{ seal: { ...encodedSeal, threshold: 0 } }, 'seal.threshold is not a whole number from 1 to 255'],
    [{ seal: { ...encodedSeal, shares: 256 } }, 'seal.shares is not a whole number from 1 to 255'],
    [{ seal: { ...encodedSeal, threshold: 4 } }, 'seal: threshold does not fit the number of shares'],
    [{ seal: { ...encodedSeal, threshold: 1 } }, 'seal: threshold does not fit the number of shares'],
    [{ seal: { ...encodedSeal, share_hashes: [] } }, 'seal.share_hashes does not have one hash for each share'],
    [{ seal: { ...encodedSeal, share_hashes: ['AB'.repeat(32)] } }, 'seal.share_hashes.0 is not a SHA-256 in hex'],
    [{ seal: { ...encodedSeal, share_hashes: Array(256).fill('ab'.repeat(32)) } }, 'seal.share_hashes has more than 255 entries'],
    [{ seal: { ...encodedSeal, key_id: 'k1' } }, 'seal.key_id does not fit the type of the seal'],
    [{ seal: { ...encodedSeal, type: 'static' } }, 'seal.key_id does not fit the type of the seal'],
    [{ seal: { ...encodedSeal, key_id: 'k'.repeat(257) } }, 'seal.key_id is longer than 256 characters'],
    [{ seal: { ...encodedSeal, wrapped_key: 'a:v1:b' } }, 'seal.wrapped_key does not fit the type of the seal'],
    [{ seal: { ...encodedSeal, type: 'transit', key_id: 'k' } }, 'seal.wrapped_key does not fit the type of the seal'],
    [
      { seal: { ...encodedSeal, type: 'transit', key_id: 'k', wrapped_key: 'a b' } },
      'seal.wrapped_key does not fit the type of the seal',
    ],
    [{ seal: { ...encodedSeal, name: 'n' } }, 'seal.name does not fit the type of the seal'],
    [
      { seal: { ...encodedSeal, type: 'transit', key_id: 'k', wrapped_key: 'a', name: 'a b' } },
      'seal.name does not fit the type of the seal',
    ],
    [{ seal: { ...encodedSeal, more: 1 } }, 'seal has an unknown field'],
  ] as [Record<string, unknown>, string][])
    it(`refuse an offer with ${JSON.stringify(change).slice(0, 60)}: ${problem}`, () => {
      expect(problemOf(decodeOffer, changed(encodeOffer(offer), change))).to.equal(problem);
    });

  for (const [change, problem] of [
    [{ challenge_id: 7 }, 'challenge_id is not the id of a challenge'],
    [{ proof: '' }, 'proof is not the base64 of 32 bytes'],
    [{ more: 1 }, 'the message has an unknown field'],
  ] as [Record<string, unknown>, string][])
    it(`refuse an answer with ${JSON.stringify(change)}: ${problem}`, () => {
      expect(problemOf(decodeAnswer, changed(encodeAnswer(answer), change))).to.equal(problem);
    });

  for (const [change, problem] of [
    [{ certificate: '' }, 'certificate is not one CERTIFICATE in PEM of at most 8192 characters'],
    [{ members: 'all' }, 'members is not a list'],
    [{ members: Array(257).fill(encodedMembers[0]) }, 'members has more than 256 entries'],
    [{ members: [{ ...encodedMembers[0], more: 1 }] }, 'members.0 has an unknown field'],
    [{ members: [{ ...encodedMembers[0], certificate: 'AB' }] }, 'members is not a list of members'],
    [{ members: [{ ...encodedMembers[0], cluster_addr: 'nowhere' }] }, 'members is not a list of members'],
  ] as [Record<string, unknown>, string][])
    it(`refuse a welcome with ${JSON.stringify(change).slice(0, 60)}: ${problem}`, () => {
      expect(problemOf(decodeWelcome, changed(encodeWelcome(welcome), change))).to.equal(problem);
    });

  it('refuse every other JSON value, with its path', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (message) => {
        for (const decode of [decodeRequest, decodeOffer, decodeAnswer, decodeWelcome])
          expect(problemOf(decode, message).length).to.be.within(1, 200);
      }),
    );
  });

  it('are not written with a field that has the form of no schema', () => {
    const fields = { clusterId: 'a', authority: { pem: '' } as never, challengeId: '0' };
    expect(() => encodeAnnouncement(fields)).to.throw(TypeError, 'schema that cannot be encoded');
  });

  it('are refused with an error that contains nothing of the message', () => {
    const secret = 'hvs.CAESIJ';
    for (const change of [
      { [secret]: 'x'.repeat(5000) },
      { name: `${secret} ` },
      { nonce: secret },
      { api_addr: `https://u:${secret}@h` },
    ])
      expect(problemOf(decodeRequest, changed(encodeRequest(request), change))).not.to.include(secret);
  });
});

describe('the proofs of a join', () => {
  const secret = randomBytes(32);
  const exchange = { request, offer, answer, admission: welcome };

  it('are an HMAC of the role and of all messages before', () => {
    const digestOf = (...messages: object[]) =>
      createHash('sha256')
        .update(JSON.stringify(['transitd join 1', ...messages]))
        .digest();
    const proofOf = (role: string, ...messages: object[]) =>
      createHmac('sha256', secret)
        .update(Buffer.concat([Buffer.from(role), digestOf(...messages)]))
        .digest();
    const opening = [encodeRequest(request), encodeOffer(offer)];
    expect(exchangedBefore(request, offer)).to.deep.equal(digestOf(encodeRequest(request), encodeAnnouncement(offer)));
    expect(joinerProof(secret, exchange)).to.deep.equal(proofOf('joiner', ...opening));
    expect(leaderProof(secret, exchange)).to.deep.equal(
      proofOf('leader', ...opening, encodeAnswer(answer), encodeAdmission(welcome)),
    );
  });

  it('differ when any field of any message differs', () => {
    const variants: (typeof exchange)[] = [
      exchange,
      ...Object.entries({
        id: 43,
        name: 'n43',
        apiAddress: 'http://10.0.0.42:8200',
        clusterAddress: '10.0.0.42:8201',
        nonVoter: true,
        request: pem('CERTIFICATE REQUEST').replace('QUI=', 'QUM='),
        nonce: randomBytes(32),
      }).map(([field, value]) => ({ ...exchange, request: { ...request, [field]: value } })),
      ...Object.entries({
        clusterId: 'abc',
        authority: pem('CERTIFICATE').replace('QUI=', 'QUM='),
        terms: { ...offer.terms, shares: 4 },
        challengeId: 'ab'.repeat(16),
        wrapped: randomBytes(93),
      }).map(([field, value]) => ({ ...exchange, offer: { ...offer, [field]: value } })),
      ...(['type', 'name', 'threshold', 'keyId', 'wrappedKey', 'shareHashes'] as const).map((field) => ({
        ...exchange,
        offer: { ...offer, terms: { ...offer.terms, [field]: field === 'shareHashes' ? [] : 'static' } as JoinOffer['terms'] },
      })),
    ];
    const proofs = variants.map((variant) => joinerProof(secret, variant).toString('hex'));
    expect(new Set(proofs).size).to.equal(variants.length);

    const later: (typeof exchange)[] = [
      ...variants,
      { ...exchange, answer: { ...answer, proof: randomBytes(32) } },
      { ...exchange, admission: { ...welcome, certificate: pem('CERTIFICATE').replace('QUI=', 'QUM=') } },
      { ...exchange, admission: { ...welcome, members: [] } },
      { ...exchange, admission: { ...welcome, members: welcome.members.toReversed() } },
      ...Object.keys(member).map((field) => ({
        ...exchange,
        admission: { ...welcome, members: [{ ...member, [field]: 'x' }, ...welcome.members.slice(1)] as JoinWelcome['members'] },
      })),
    ];
    const all = [...proofs, ...later.map((variant) => leaderProof(secret, variant).toString('hex'))];
    expect(new Set(all).size).to.equal(all.length);
  });
});
