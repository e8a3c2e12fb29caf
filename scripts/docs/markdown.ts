/** The few pieces of Markdown that the generated pages are made of. */

/** Says on top of a page where it comes from. */
export const madeFrom = (source: string): string =>
  `<!-- Made from ${source} by \`npm run docs\`; change it there. -->`;

/** A table; cells may hold Markdown, and anything that would end them is escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Text as it is typed. */
export const code = (text: string): string => (text === '' ? '' : `\`${text}\``);

/** Blocks with an empty line between them, and a line break at the end. */
export const page = (blocks: readonly string[]): string =>
  `${blocks.filter((block) => block !== '').join('\n\n')}\n`;
