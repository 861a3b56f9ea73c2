// @live
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { root } from '../process/live-server.ts';

describe('the compiled sources in the images', () => {
  for (const file of ['Dockerfile', 'deploy/image/Dockerfile'])
    it(`are compiled with the default flags of V8, with which the program loads them: ${file}`, () => {
      const [, options] =
        /NODE_COMPILE_CACHE=\S+ (?:\\\n *)?\S*\bnode (.*)--input-type=module/.exec(readFileSync(join(root, file), 'utf8')) ?? [];
      expect(options).to.equal('');
    });
});
