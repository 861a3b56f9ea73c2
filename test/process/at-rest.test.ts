// @live
// Nothing on disk reveals a secret: a planted key and a planted plaintext are nowhere in the data directory.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { safety } from '../safety.ts';
import { base64, processMs, Workbench } from './live-server.ts';
import { shapesOf } from './secret-shapes.ts';

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).isFile());

describe('data at rest', () => {
  const bench = new Workbench();
  afterEach(() => bench.clean());

  it('finds a secret in every encoding if it is there', () => {
    const secret = Buffer.from('a secret of some length, planted');
    for (const before of ['', 'x', 'xy', 'xyz']) {
      const line = Buffer.from(`${before}${secret.toString('latin1')}tail`);
      for (const text of [line, Buffer.from(line.toString('hex')), Buffer.from(line.toString('base64'))]) {
        expect(shapesOf(secret).some((shape) => text.includes(shape))).to.equal(true);
      }
    }
  });

  it('contains no token, plaintext or seal key in any file, and only the owner can access folders and files', async function () {
    this.timeout(processMs);
    const dataDir = bench.folder();
    const server = await bench.start({ dataDir });
    const plaintext = Buffer.from('this plaintext must never reach the disk');
    await server.call('POST', 'transit/keys/planted', { exportable: true });
    const encrypted = await server.call('POST', 'transit/encrypt/planted', { plaintext: plaintext.toString('base64') });
    expect(encrypted.status).to.equal(200);
    expect(
      (await server.call('POST', 'transit/decrypt/planted', { ciphertext: encrypted.string('data.ciphertext') })).at(
        'data.plaintext',
      ),
    ).to.equal(base64(plaintext.toString()));
    const token = server.rootToken;
    const sealKey = readFileSync(join(dataDir, 'dev/seal.key'));
    expect((await server.stop()).code).to.equal(0);
    expect((await (await bench.start({ dataDir })).stop()).code).to.equal(0);

    const data = join(dataDir, 'data');
    const files = filesIn(data);
    expect(files.length).to.be.greaterThan(3);
    const sealKeyRaw = Buffer.from(sealKey.toString('utf8').trim(), 'base64');
    expect(sealKeyRaw.length).to.equal(32);
    const found = files.flatMap((file) => {
      const content = readFileSync(file);
      return [plaintext, Buffer.from(token), sealKeyRaw].flatMap((secret) =>
        shapesOf(secret)
          .filter((shape) => content.includes(shape))
          .map(() => file),
      );
    });
    expect(found, safety).to.deep.equal([]);
    for (const file of files) expect(statSync(file).mode & 0o077, file).to.equal(0);
    expect(statSync(data).mode & 0o077).to.equal(0);
  });
});
