/** Helpers that write Markdown for the generated pages. */

/** The comment at the top of a generated page. */
export const generatedFrom = (source: string): string =>
  `<!-- Generated from ${source} by \`npm run docs\`; edit the source. -->`;

/** A table. Cells may contain Markdown; `|` is escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Inline code. */
export const code = (text: string): string => (text === '' ? '' : `\`${text}\``);

/** Joins blocks with empty lines. */
export const page = (blocks: readonly string[]): string =>
  `${blocks.filter((block) => block !== '').join('\n\n')}\n`;
