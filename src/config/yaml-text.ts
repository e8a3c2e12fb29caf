/** Parses and writes YAML, and finds the line number of each setting. */

import {
  Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type ParsedNode,
  parseDocument,
} from 'yaml';
import type { SettingPath } from './object-path.ts';

export interface YamlText {
  readonly tree: unknown;
  /** Whether the text was YAML at all; if not, the tree may lack parts of it. */
  readonly isReadable: boolean;
  readonly errors: readonly { readonly line: number; readonly message: string }[];
  /** The line number, from 1, of the value at a path, or of its closest existing parent. */
  lineOf(path: SettingPath): number;
}

/** Parses one YAML document. Never throws; problems are among the errors. */
export function readYaml(text: string): YamlText {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, uniqueKeys: true, prettyErrors: false });
  const lineAt = (offset: number) => lineCounter.linePos(offset).line;
  const syntaxErrors = [...document.errors, ...document.warnings].map(({ code, message, pos }) => ({
    line: lineAt(pos[0]),
    message:
      code === 'DUPLICATE_KEY'
        ? 'duplicate key; remove one of the two'
        : `not valid YAML: ${withoutSource(message)}`,
  }));

  const content = contentOf(document);
  return {
    tree: content.tree,
    isReadable: content.error === undefined && document.errors.every(({ code }) => code === 'DUPLICATE_KEY'),
    errors:
      content.error === undefined ? syntaxErrors : [...syntaxErrors, { line: 1, message: content.error }],
    lineOf: (path) => lineAt(offsetOf(document, path)),
  };
}

/**
 * Writes a tree as YAML.
 *
 * @param header    comment lines at the top
 * @param commentOf the comment behind each value; a list of plain values is one value
 */
export function writeYaml(
  tree: unknown,
  header: readonly string[],
  commentOf: (path: SettingPath) => string,
): string {
  const document = new Document(tree, { aliasDuplicateObjects: false });
  document.commentBefore = header.map((line) => ` ${line}`).join('\n');
  addComments(document.contents, [], commentOf);
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

function addComments(node: Node | null, path: SettingPath, commentOf: (path: SettingPath) => string): void {
  if (isMap<unknown, Node | null>(node) && node.items.length > 0) {
    for (const { key, value } of node.items)
      addComments(value, [...path, String(isScalar(key) ? key.value : key)], commentOf);
    return;
  }
  if (isSeq<Node>(node) && node.items.some((item) => isMap(item))) {
    for (const [index, item] of node.items.entries()) addComments(item, [...path, index], commentOf);
    return;
  }
  if (!node) return;
  if (isSeq(node)) node.flow = true;
  node.comment = ` ${commentOf(path)}`;
}

/** The parser's message up to the colon. A piece of the text follows it, which may be a secret. */
const withoutSource = (message: string) => message.replace(/: .*/s, '');

/** Resolves aliases, which fails if there are suspiciously many. */
function contentOf(document: Document.Parsed): { tree?: unknown; error?: string } {
  try {
    return { tree: document.toJS() ?? {} };
  } catch {
    return { error: 'not valid YAML: too many aliases' };
  }
}

function offsetOf(document: Document.Parsed, path: SettingPath): number {
  let node: ParsedNode | null | undefined = document.contents;
  let offset = 0;
  for (const key of path) {
    const child = childOf(isAlias(node) ? (node.resolve(document) as ParsedNode | undefined) : node, key);
    if (!child) return offset;
    offset = child.offset;
    node = child.node;
  }
  return offset;
}

interface Child {
  readonly offset: number;
  readonly node: ParsedNode | null | undefined;
}

/** The child under a key. Of a duplicate name the later one: its value is in effect. */
function childOf(node: ParsedNode | null | undefined, key: string | number): Child | undefined {
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
