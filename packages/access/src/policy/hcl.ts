import type { Steps } from '@transitd/event-loop';
import type { Document, Member, Value } from './document.ts';
import { Scanner } from './scanner.ts';

/**
 * Parses the subset of HCL that policies use: blocks with labels, attributes, single-line strings, numbers, booleans, lists,
 * objects and the three kinds of comment. Here documents and expressions are not supported.
 * @throws PolicyMistake
 */
export function* parseHcl(text: string): Steps<Document> {
  const scanner = new Scanner(text, { blank: /[ \t\r\n]*/y, comments: true });
  return { kind: 'object', at: 0, members: yield* body(scanner, '') };
}

/** Parses members up to and including `close`: `}`, or empty for the end of the text. */
function* body(scanner: Scanner, close: string): Steps<Member[]> {
  const members: Member[] = [];
  for (;;) {
    scanner.skipSpace();
    if (scanner.next === close) {
      scanner.take(close);
      return members;
    }
    yield;
    members.push(yield* member(scanner, close === '' ? 'expected a name' : 'expected a name or "}"'));
    scanner.skipSpace();
    scanner.take(',');
  }
}

function* member(scanner: Scanner, expected: string): Steps<Member> {
  const { at } = scanner;
  const name = nameOf(scanner);
  if (name === undefined) throw scanner.mistake(expected);
  scanner.skipSpace();
  if (scanner.take('=')) {
    scanner.skipSpace();
    return { name, at, value: yield* value(scanner) };
  }
  return { name, at, value: yield* block(scanner) };
}

/** Parses the rest of a block after its name: labels, each one level of nesting, and the body. */
function* block(scanner: Scanner): Steps<Document> {
  const { at } = scanner;
  return yield* scanner.nested(function* (): Steps<Document> {
    if (scanner.take('{')) return { kind: 'object', at, members: yield* body(scanner, '}') };
    const name = nameOf(scanner);
    if (name === undefined) throw scanner.mistake('expected "=", "{" or a label');
    scanner.skipSpace();
    return { kind: 'object', at, members: [{ name, at, value: yield* block(scanner) }] };
  });
}

const nameOf = (scanner: Scanner): string | undefined =>
  scanner.next === '"' ? scanner.string() : scanner.match(/[A-Za-z_][\w.-]*/y);

function* value(scanner: Scanner): Steps<Value> {
  const { at, next } = scanner;
  if (next === '"') return { kind: 'text', at, text: scanner.string() };
  if (next === '[') return yield* list(scanner);
  if (next === '{') return yield* block(scanner);
  if (scanner.text.startsWith('<<', at)) throw scanner.mistake('here documents are not supported');
  if (scanner.match(/true\b/y) !== undefined) return { kind: 'bool', at, bool: true };
  if (scanner.match(/false\b/y) !== undefined) return { kind: 'bool', at, bool: false };
  const number = scanner.match(/-?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\b/y);
  if (number === undefined) throw scanner.mistake('expected a value');
  return { kind: 'number', at, number: number.startsWith('-') ? -Number(number.slice(1)) : Number(number) };
}

function* list(scanner: Scanner): Steps<Value> {
  const { at } = scanner;
  scanner.expect('[');
  return yield* scanner.nested(function* (): Steps<Value> {
    const items: Value[] = [];
    for (;;) {
      scanner.skipSpace();
      if (scanner.take(']')) return { kind: 'list', at, items };
      yield;
      items.push(yield* value(scanner));
      scanner.skipSpace();
      if (scanner.take(']')) return { kind: 'list', at, items };
      if (!scanner.take(',')) throw scanner.mistake('expected "," or "]"');
    }
  });
}
