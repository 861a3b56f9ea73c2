import { createRequire } from 'node:module';
import type { Node } from 'yaml';

/** Loads the parser when a file is parsed: development nodes and gateways parse none, and it has some 70 modules. */
const loadYaml = (): typeof import('yaml') => createRequire(import.meta.url)('yaml');

/** A key of the configuration: names of sections and keys, and positions in lists from 0. */
export type KeyPath = readonly (string | number)[];

/** A parsed configuration file that knows where its keys are. */
export interface ConfigSource {
  readonly input: unknown;
  /** Errors in the YAML, as `line:column: message`. If there are any, `input` is undefined. */
  readonly mistakes: readonly string[];
  /**
   * Returns the `line:column` of a value, or of its key. If the key is missing, returns the position of the nearest section that exists.
   */
  readonly positionOf: (path: KeyPath, of: 'key' | 'value') => string;
}

/** Parses YAML, which includes JSON. Does not throw. */
export function parseSource(text: string): ConfigSource {
  const { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } = loadYaml();
  const lines = new LineCounter();
  const document = parseDocument(text, { uniqueKeys: true, lineCounter: lines, logLevel: 'error' });
  const place = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `${Math.max(line, 1)}:${Math.max(col, 1)}`;
  };
  const mistakes = document.errors.map(({ pos: [offset], message }) => `${place(offset)}: ${message.split('\n')[0]}`);
  try {
    const input: unknown = mistakes.length === 0 ? document.toJS() : undefined;
    const positionOf: ConfigSource['positionOf'] = (path, of) => place(offsetOf(document.contents, path, of));
    return { input, mistakes, positionOf };
  } catch (error) {
    // An alias without an anchor, or too many aliases, is found only now.
    return { input: undefined, mistakes: [`1:1: ${(error as Error).message.split('\n')[0]}`], positionOf: () => '1:1' };
  }

  function offsetOf(root: Node | null, path: KeyPath, of: 'key' | 'value'): number {
    let [node, offset] = [root as unknown, root?.range?.[0] ?? 0];
    for (const [depth, part] of path.entries()) {
      if (isAlias(node)) node = node.resolve(document);
      const pair = isMap(node) ? node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part)) : undefined;
      const next: unknown = isSeq(node) ? node.items[Number(part)] : pair?.value;
      const keyOffset = isScalar(pair?.key) ? pair.key.range?.[0] : undefined;
      if (next === undefined && keyOffset === undefined) break;
      const valueOffset = (next as Node | null)?.range?.[0];
      offset = (of === 'key' && depth === path.length - 1 ? keyOffset : (valueOffset ?? keyOffset)) ?? offset;
      node = next;
    }
    return offset;
  }
}
