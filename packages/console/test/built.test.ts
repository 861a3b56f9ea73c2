// @live
// The console that ships is the one whose sources are in this repository.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { builtFiles, securityHeaders } from '@transitd/console';
import { expect } from 'chai';
import { builtModule, bundle } from '../build/bundle.ts';

const compressedBytesMax = 150 * 1024;

describe('the built console', () => {
  it('is the build of its sources: run `npm run build` after a change', async () => {
    expect((await bundle()) === readFileSync(builtModule, 'utf8')).to.equal(true);
  });

  it('takes at most 150 KiB, compressed', () => {
    const bytes = builtFiles.map(({ content }) => gzipSync(content).length).reduce((sum, one) => sum + one, 0);
    expect(bytes).to.be.at.most(compressedBytesMax);
  });

  it('names no other origin, and has no script or style in its page', () => {
    for (const { name, content } of builtFiles) {
      const addresses = [...content.matchAll(/https?:\/\/[^"'`\s)]+/g)].map(([address]) => address);
      const others = addresses.filter((address) => !address.startsWith('http://www.w3.org/'));
      expect(others, name).to.deep.equal([]);
    }
    const page = builtFiles.find(({ name }) => name === 'index.html')?.content ?? '';
    expect(page).to.match(/<script type="module" crossorigin src="\/ui\/index\.js"><\/script>/);
    expect(page).not.to.match(/<style|<script>|\son\w+=|\sstyle=/);
  });

  it('never stores anything in the browser, and reads no cookie', () => {
    const script = builtFiles.find(({ name }) => name === 'index.js')?.content ?? '';
    expect(script).not.to.match(/localStorage|sessionStorage|indexedDB|document\.cookie|serviceWorker/);
  });

  it('has the policy that the threat model names', () => {
    expect(securityHeaders['Content-Security-Policy']).to.equal(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; " +
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
  });
});
