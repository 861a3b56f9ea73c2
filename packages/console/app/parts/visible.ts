import { options } from 'preact';

/**
 * Matches control characters except line feeds and tabs, format characters (such as bidirectional overrides), and line and paragraph
 * separators. A reader does not see them, and some show the text around them in another order.
 */
const hidden = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Returns text in which every hidden character is an escape such as `\u{202e}`. */
export const visible = (text: string): string => text.replace(hidden, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`);

/** Preact holds a text as a node without a type, whose props are the text. */
interface MaybeText {
  readonly type: unknown;
  props: unknown;
}

/** Makes Preact write every text of the page with `visible`, whoever sent it. Attributes and values of inputs keep their characters. */
export function showHiddenCharacters(): void {
  options.vnode = (node: MaybeText): void => {
    if (node.type === null && typeof node.props === 'string') node.props = visible(node.props);
  };
}
