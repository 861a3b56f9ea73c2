import type { Document, Member, Value } from './document.ts';
import { Scanner } from './scanner.ts';

/** Reads JSON (RFC 8259) whose top is an object. Unlike `JSON.parse` it remembers where each value stood. @throws PolicyMistake */
export function parseJson(text: string): Document {
  const scanner = new Scanner(text, { blank: /[ \t\r\n]*/y, comments: false });
  scanner.skipSpace();
  const document = object(scanner);
  scanner.skipSpace();
  if (scanner.next !== '') throw scanner.mistake('something follows the end of the object');
  return document;
}

function value(scanner: Scanner): Value {
  const { at, next } = scanner;
  if (next === '"') return { kind: 'text', at, text: scanner.string() };
  if (next === '{') return object(scanner);
  if (next === '[') return list(scanner);
  if (scanner.match(/true\b/y) !== undefined) return { kind: 'bool', at, bool: true };
  if (scanner.match(/false\b/y) !== undefined) return { kind: 'bool', at, bool: false };
  if (scanner.match(/null\b/y) !== undefined) return { kind: 'null', at };
  const number = scanner.match(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
  if (number === undefined) throw scanner.mistake('expected a value');
  return { kind: 'number', at, number: Number(number) };
}

function object(scanner: Scanner): Document {
  const { at } = scanner;
  return scanner.nested(() => {
    const members: Member[] = [];
    commaSeparated(scanner, '{', '}', () => {
      const nameAt = scanner.at;
      if (scanner.next !== '"') throw scanner.mistake('expected a name in quotes');
      const name = scanner.string();
      scanner.skipSpace();
      scanner.expect(':');
      scanner.skipSpace();
      members.push({ name, at: nameAt, value: value(scanner) });
    });
    return { kind: 'object', at, members };
  });
}

function list(scanner: Scanner): Value {
  const { at } = scanner;
  return scanner.nested(() => {
    const items: Value[] = [];
    commaSeparated(scanner, '[', ']', () => items.push(value(scanner)));
    return { kind: 'list', at, items };
  });
}

function commaSeparated(scanner: Scanner, open: string, close: string, item: () => void): void {
  scanner.expect(open);
  scanner.skipSpace();
  if (scanner.take(close)) return;
  for (;;) {
    item();
    scanner.skipSpace();
    if (scanner.take(close)) return;
    if (!scanner.take(',')) throw scanner.mistake(`expected "," or "${close}"`);
    scanner.skipSpace();
  }
}
