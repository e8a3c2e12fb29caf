/** Reads YAML, and remembers on which line everything stands. */

import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type ParsedNode,
  parseDocument,
} from 'yaml';
import type { SettingPath } from './object-path.ts';

/** What a YAML text holds. */
export interface YamlText {
  readonly tree: unknown;
  /** Whether the tree can be trusted: it cannot if the text is no YAML at all. */
  readonly readable: boolean;
  readonly errors: readonly { readonly line: number; readonly message: string }[];
  /** The line, from 1, of what stands at a path, or of the nearest thing around it. */
  lineOf(path: SettingPath): number;
}

/** Reads one YAML document. Never throws: what is wrong is among the faults. */
export function readYaml(text: string): YamlText {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, uniqueKeys: true, prettyErrors: false });
  const lineAt = (offset: number) => lineCounter.linePos(offset).line;
  const problems = [...document.errors, ...document.warnings];
  const faults = problems.map(({ code, message, pos }) => ({
    line: lineAt(pos[0]),
    message:
      code === 'DUPLICATE_KEY'
        ? 'this name stands here twice; remove one'
        : `not valid YAML: ${withoutText(message)}`,
  }));

  const content = contentOf(document);
  return {
    tree: content.tree,
    readable: content.fault === undefined && document.errors.every(({ code }) => code === 'DUPLICATE_KEY'),
    errors: content.fault === undefined ? faults : [...faults, { line: 1, message: content.fault }],
    lineOf: (path) => lineAt(offsetOf(document, path)),
  };
}

/** What the parser says, without what it found: behind the colon stands a piece of the text, which may be a secret. */
const withoutText = (message: string) => message.replace(/: .*/s, '');

/** Aliases are resolved here, which fails if there are suspiciously many. */
function contentOf(document: Document.Parsed): { tree?: unknown; fault?: string } {
  try {
    return { tree: document.toJS() ?? {} };
  } catch {
    return { fault: 'not valid YAML: an alias cannot be resolved' };
  }
}

function offsetOf(document: Document.Parsed, path: SettingPath): number {
  let node: ParsedNode | null | undefined = document.contents;
  let offset = 0;
  for (const key of path) {
    const found = entryOf(isAlias(node) ? (node.resolve(document) as ParsedNode | undefined) : node, key);
    if (!found) return offset;
    offset = found.offset;
    node = found.node;
  }
  return offset;
}

interface Entry {
  readonly offset: number;
  readonly node: ParsedNode | null | undefined;
}

/** The entry of a mapping or list under a key; of a name that stands there twice, the later one, which is what counts. */
function entryOf(node: ParsedNode | null | undefined, key: string | number): Entry | undefined {
  if (isSeq<ParsedNode>(node)) {
    const item = node.items[Number(key)];
    return item && { offset: item.range[0], node: item };
  }
  if (!isMap<ParsedNode, ParsedNode | null>(node)) return undefined;
  const pair = node.items.findLast(
    (candidate) => isScalar(candidate.key) && String(candidate.key.value) === String(key),
  );
  return pair && { offset: pair.key.range[0], node: pair.value };
}
