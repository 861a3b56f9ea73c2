// Reads imports from the text of a module. TypeScript 7 has no API; type imports count as well.

/** Returns every module specifier of `import … from`, `export … from`, `import '…'` and `import('…')`. */
export function specifiersOf(text: string): string[] {
  const code = text.replace(/^\s*(\/\/|\*|\/\*).*$/gm, '');
  return [...code.matchAll(/(?<!['"\w])(?:from\s*|import\s*\(?\s*)(['"])([^'"\n]+)\1/g)].map((match) => match[2] ?? '');
}
