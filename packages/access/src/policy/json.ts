import type { Steps } from '@transitd/event-loop';
import type { Document, Member, Value } from './document.ts';
import { Scanner } from './scanner.ts';

/** Parses a JSON object (RFC 8259). Unlike `JSON.parse`, it keeps the offset of each value. @throws PolicyMistake */
export function* parseJson(text: string): Steps<Document> {
  const scanner = new Scanner(text, { blank: /[ \t\r\n]*/y, comments: false });
  scanner.skipSpace();
  const document = yield* object(scanner);
  scanner.skipSpace();
  if (scanner.next !== '') throw scanner.mistake('unexpected text after the end of the object');
  return document;
}

function* value(scanner: Scanner): Steps<Value> {
  const { at, next } = scanner;
  if (next === '"') return { kind: 'text', at, text: scanner.string() };
  if (next === '{') return yield* object(scanner);
  if (next === '[') return yield* list(scanner);
  if (scanner.match(/true\b/y) !== undefined) return { kind: 'bool', at, bool: true };
  if (scanner.match(/false\b/y) !== undefined) return { kind: 'bool', at, bool: false };
  if (scanner.match(/null\b/y) !== undefined) return { kind: 'null', at };
  const number = scanner.match(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
  if (number === undefined) throw scanner.mistake('expected a value');
  return { kind: 'number', at, number: Number(number) };
}

function* object(scanner: Scanner): Steps<Document> {
  const { at } = scanner;
  return yield* scanner.nested(function* (): Steps<Document> {
    const members: Member[] = [];
    yield* commaSeparated(scanner, '{', '}', function* (): Steps<void> {
      const nameAt = scanner.at;
      if (scanner.next !== '"') throw scanner.mistake('expected a name in quotes');
      const name = scanner.string();
      scanner.skipSpace();
      scanner.expect(':');
      scanner.skipSpace();
      members.push({ name, at: nameAt, value: yield* value(scanner) });
    });
    return { kind: 'object', at, members };
  });
}

function* list(scanner: Scanner): Steps<Value> {
  const { at } = scanner;
  return yield* scanner.nested(function* (): Steps<Value> {
    const items: Value[] = [];
    yield* commaSeparated(scanner, '[', ']', function* (): Steps<void> {
      items.push(yield* value(scanner));
    });
    return { kind: 'list', at, items };
  });
}

function* commaSeparated(scanner: Scanner, open: string, close: string, item: () => Steps<void>): Steps<void> {
  scanner.expect(open);
  scanner.skipSpace();
  if (scanner.take(close)) return;
  for (;;) {
    yield;
    yield* item();
    scanner.skipSpace();
    if (scanner.take(close)) return;
    if (!scanner.take(',')) throw scanner.mistake(`expected "," or "${close}"`);
    scanner.skipSpace();
  }
}
