// Finds the English in the values of YAML: descriptions of alerts, names of tests, titles.
import type { Text } from './texts.ts';

/** Returns the plain, quoted and folded values that have more than one word. Literal blocks (`|`) and some keys hold code. */
export function yamlValuesOf(yaml: string): Text[] {
  const texts: Text[] = [];
  let block: { readonly indent: number; readonly text: { line: number; lines: string[] } | undefined } | undefined;
  const end = (): void => {
    const { line, lines } = block?.text ?? { line: 0, lines: [] };
    if (lines.length > 0) texts.push({ kind: 'string', line, text: lines.join('\n') });
    block = undefined;
  };
  for (const [index, whole] of yaml.split('\n').entries()) {
    const content = whole.trim();
    const indent = whole.length - whole.trimStart().length;
    if (block !== undefined && (content === '' || indent > block.indent)) {
      if (content !== '') block.text?.lines.push(content);
      continue;
    }
    end();
    const [, key = '', value = ''] = /^((?:- )*(?:[\w.-]+: +)?)(.*)$/.exec(content) ?? [];
    if (/^[|>][+-]?$/.test(value)) block = { indent, text: value.startsWith('>') ? { line: index + 2, lines: [] } : undefined };
    else if (key !== '' && !/^(?:- )*(?:expr|run|command): /.test(key) && /\S\s+\S/.test(value) && !/^[[{#&*]/.test(value))
      texts.push({ kind: 'string', line: index + 1, text: value.replace(/^(["'])(.*)\1$/, '$2') });
  }
  end();
  return texts;
}
