/** Parses and writes YAML, and finds the line number of each setting. */

import {
  Document,
  type ErrorCode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type ParsedNode,
  parseDocument,
  visit,
} from 'yaml';
import type { SettingPath } from './object-path.ts';

export interface YamlText {
  readonly tree: unknown;
  /** Whether the text was YAML at all; if not, the tree may lack parts of it. */
  readonly isReadable: boolean;
  readonly errors: readonly YamlError[];
  /** The line number, from 1, of the value at a path, or of its closest existing parent. */
  lineOf(path: SettingPath): number;
}

export interface YamlError {
  readonly line: number;
  /** The setting, if the error concerns one. */
  readonly path: SettingPath;
  readonly message: string;
}

/** Parses one YAML document. Never throws; problems are among the errors. */
export function readYaml(text: string): YamlText {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, uniqueKeys: false, merge: true, prettyErrors: false });
  const lineAt = (offset: number) => lineCounter.linePos(offset).line;
  const syntaxErrors = [...document.errors, ...document.warnings].map(({ code, message, pos }) => ({
    line: lineAt(pos[0]),
    path: [],
    message: `not valid YAML: ${adviceOn[code] ?? withoutSource(message)}`,
  }));
  const duplicates = duplicateKeys(document.contents, []).map(({ path, offset, firstOffset }) => ({
    line: lineAt(offset),
    path,
    message: `duplicate key, which is already in line ${lineAt(firstOffset)}; remove one of the two`,
  }));

  const aliasErrors = unknownAliases(document).map((offset) => ({
    line: lineAt(offset),
    path: [],
    message: 'not valid YAML: no anchor has this name; write a text that begins with * in quotes',
  }));
  const content = aliasErrors.length === 0 ? contentOf(document) : {};
  const contentErrors = content.error === undefined ? [] : [{ line: 1, path: [], message: content.error }];
  const unreadable = [...syntaxErrors, ...aliasErrors, ...contentErrors];
  return {
    tree: content.tree,
    isReadable: unreadable.length === 0,
    errors: [...unreadable, ...duplicates],
    lineOf: (path) => lineAt(offsetOf(document, path)),
  };
}

/** Where the parser's message is written for programmers. */
const adviceOn: Partial<Record<ErrorCode, string>> = {
  MULTIPLE_DOCS: 'the file contains several documents; remove the lines ---, or all documents but one',
  TAB_AS_INDENT: 'tabs are not allowed as indentation; use spaces',
};

interface DuplicateKey {
  readonly path: SettingPath;
  readonly offset: number;
  readonly firstOffset: number;
}

/** Each key that occurs before in the same mapping. Merge keys (`<<`) may occur repeatedly. */
function duplicateKeys(node: ParsedNode | null, path: SettingPath): readonly DuplicateKey[] {
  if (isSeq<ParsedNode>(node))
    return node.items.flatMap((item, index) => duplicateKeys(item, [...path, index]));
  if (!isMap<ParsedNode, ParsedNode | null>(node)) return [];
  const firstOffsets = new Map<string, number>();
  return node.items.flatMap(({ key, value }) => {
    const inner = duplicateKeys(value, [...path, nameOf(key)]);
    if (!isScalar(key) || nameOf(key) === mergeKey) return inner;
    const [offset] = key.range;
    const firstOffset = firstOffsets.get(nameOf(key));
    if (firstOffset !== undefined) return [{ path: [...path, nameOf(key)], offset, firstOffset }, ...inner];
    firstOffsets.set(nameOf(key), offset);
    return inner;
  });
}

const mergeKey = '<<';

/** Empty for a key that is a list or a mapping. */
function nameOf(key: ParsedNode): string {
  if (!isScalar(key)) return '';
  return typeof key.value === 'symbol' ? mergeKey : String(key.value); // the library parses `<<` to a symbol
}

/** The offsets of aliases without an anchor above them. */
function unknownAliases(document: Document.Parsed): readonly number[] {
  const offsets: number[] = [];
  visit(document, {
    Alias(_key, alias) {
      if (!alias.resolve(document)) offsets.push(alias.range?.[0] ?? 0);
    },
  });
  return offsets;
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
  commentOf: (path: SettingPath) => string | undefined,
): string {
  const document = new Document(tree, { aliasDuplicateObjects: false });
  document.commentBefore = header.map((line) => ` ${line}`).join('\n');
  addComments(document.contents, [], commentOf);
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

function addComments(
  node: Node | null,
  path: SettingPath,
  commentOf: (path: SettingPath) => string | undefined,
): void {
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
  const comment = commentOf(path);
  if (comment !== undefined) node.comment = ` ${comment}`;
}

/** The parser's message up to the colon. A piece of the text follows it, which may be a secret. */
const withoutSource = (message: string) => message.replace(/: .*/s, '');

/** Resolves aliases and merge keys, which fails if there are suspiciously many. */
function contentOf(document: Document.Parsed): { tree?: unknown; error?: string } {
  try {
    return { tree: document.toJS() ?? {} };
  } catch {
    return { error: 'not valid YAML: too many aliases, or a merge key (<<) whose value is not a mapping' };
  }
}

function offsetOf(document: Document.Parsed, path: SettingPath): number {
  let node: ParsedNode | null | undefined = document.contents;
  let offset = 0;
  for (const key of path) {
    const child = childOf(document, resolved(document, node), key);
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
function childOf(
  document: Document.Parsed,
  node: ParsedNode | null | undefined,
  key: string | number,
): Child | undefined {
  if (isSeq<ParsedNode>(node)) {
    const item = node.items[Number(key)];
    return item && { offset: item.range[0], node: item };
  }
  if (!isMap<ParsedNode, ParsedNode | null>(node)) return undefined;
  const pairOf = (name: string) => node.items.findLast((candidate) => nameOf(candidate.key) === name);
  const pair = pairOf(String(key));
  return pair
    ? { offset: pair.key.range[0], node: pair.value }
    : mergedChildOf(document, pairOf(mergeKey)?.value, key);
}

/** The child under a key of the mappings that a merge key names. */
function mergedChildOf(
  document: Document.Parsed,
  merged: ParsedNode | null | undefined,
  key: string | number,
): Child | undefined {
  const sources = isSeq<ParsedNode>(merged) ? merged.items : [merged];
  for (const source of sources) {
    const child = childOf(document, resolved(document, source), key);
    if (child) return child;
  }
  return undefined;
}

/** The node that an alias stands for; any other node itself. */
const resolved = (document: Document.Parsed, node: ParsedNode | null | undefined) =>
  isAlias(node) ? (node.resolve(document) as ParsedNode | undefined) : node;
