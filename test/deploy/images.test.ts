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

describe('the images', () => {
  for (const file of ['Dockerfile', 'deploy/image/Dockerfile'])
    it(`run the program by its name on PATH, as the chart and its operators do: ${file}`, () => {
      expect(readFileSync(join(root, file), 'utf8')).to.match(/^ENTRYPOINT \["transitd"\]$/m);
    });
});

describe('the shipped ways to start a node', () => {
  for (const file of ['package.json', 'Dockerfile', 'scripts/release/transitd.sh', 'scripts/cluster/dev-node.ts'])
    it(`limit the memory of the allocator and of the young generation: ${file}`, () => {
      const text = readFileSync(join(root, file), 'utf8');
      expect(text).to.match(/MALLOC_ARENA_MAX\W*2\b/);
      expect(text).to.match(/--max-semi-space-size=8\b/);
    });
});
