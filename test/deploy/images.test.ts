// @live
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { root } from '../process/live-server.ts';

describe('the compiled sources in the images', () => {
  const program = readFileSync(join(root, 'packages/server/transitd.mjs'), 'utf8');
  const flags = [...program.matchAll(/setFlagsFromString\('([^']+)'\)/g)].map(([, flag]) => flag ?? '');

  for (const file of ['Dockerfile', 'deploy/image/Dockerfile'])
    it(`are compiled with the flags of V8 that the program sets, since Node has a cache for each set of flags: ${file}`, () => {
      const [, options] =
        /NODE_COMPILE_CACHE=\S+ (?:\\\n *)?\S*\bnode (.*)--input-type=module/.exec(readFileSync(join(root, file), 'utf8')) ?? [];
      expect(flags).to.have.length(1);
      expect(options?.trim().split(' ')).to.deep.equal(flags);
    });
});
