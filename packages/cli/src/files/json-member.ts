/** Where the value of a member is in a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Finds the string value of a member in the text of a JSON object, so that it can be replaced without changing anything else: a parser
 * would round large integers, and drop members that occur twice.
 * @param text - valid JSON
 * @returns undefined if the text is no object, or does not have the member exactly once, with a string
 */
export function stringMember(text: string, name: string): Span | undefined {
  const found: Span[] = [];
  let depth = 0;
  let key: string | undefined;
  let isKeyNext = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') {
      const end = endOfString(text, at);
      if (depth === 1 && isKeyNext) key = JSON.parse(text.slice(at, end)) as string;
      else if (depth === 1 && key === name) found.push({ start: at, end });
      isKeyNext = false;
      at = end - 1;
    } else if (character === '{' || character === '[') {
      depth += 1;
      isKeyNext = character === '{' && depth === 1;
      // The outermost value must be an object.
      if (depth === 1 && !isKeyNext) return undefined;
    } else if (character === '}' || character === ']') depth -= 1;
    else if (character === ',' && depth === 1) [isKeyNext, key] = [true, undefined];
  }
  return found.length === 1 ? found[0] : undefined;
}

/** Returns the position behind the closing quote. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let slashes = 0;
    while (text[quote - 1 - slashes] === '\\') slashes += 1;
    if (slashes % 2 === 0) return quote + 1;
  }
  return text.length;
}
