/**
 * Matches control characters (C0, DEL, C1), format characters (such as bidirectional overrides), and line and paragraph separators. A
 * terminal may obey them, and a reader does not see them.
 */
const controls = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Returns text that cannot control a terminal: control characters, except line feeds and tabs, become `\u{1b}` and the like. */
export const escapeControls = (text: string): string =>
  text.replace(controls, (character) =>
    character === '\n' || character === '\t' ? character : `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );

/** Returns one line: all control characters become the escapes of a JSON string, so that JSON keeps its value. */
export const escapeInJson = (line: string): string =>
  line.replace(controls, (character) =>
    Array.from({ length: character.length }, (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  );
