// Reads the files that the rules check. The rules themselves are pure functions of paths and texts.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** A file of the repository; `path` is relative to its root, with slashes. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** A violation of a rule. `line` counts from 1; 0 means the whole file or folder. */
export interface Finding {
  readonly rule: string;
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

const readable =
  /\.(?:tsx?|mjs|js|md|ya?ml|json|sh|go|c|py|cfg|service|tpl)$|(?:^|\/)(?:Dockerfile[^/]*|\.ci\/run|\.githooks\/[^/]+)$/;

/** Not checked: cases and vectors that others publish, the lock file, which npm writes, the built console, and generated messages. */
const foreign =
  /^test\/conformance\/|\/vectors\/|^package-lock\.json$|^packages\/console\/src\/built\.ts$|\/wire\/\w+_pb\.ts$|(?:^|\/)node_modules\//;

/** Returns the repository's own text files below `root`: files that git tracks, and new files that git does not ignore. */
export function readSourceFiles(root: string): SourceFile[] {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  return [...new Set(listed.split('\0'))]
    .filter((path) => readable.test(path) && !foreign.test(path))
    .filter((path) => existsSync(join(root, path)) && statSync(join(root, path)).isFile())
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}
