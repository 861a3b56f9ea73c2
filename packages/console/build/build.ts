// `npm run build`: builds the console into src/built.ts.
import { writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { builtModule, bundle } from './bundle.ts';

const text = await bundle();
writeFileSync(builtModule, text);
console.log(`console: ${text.length} bytes, ${gzipSync(text).length} compressed`);
